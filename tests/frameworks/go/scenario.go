// What all programs share: their servers, how they wait, and how one of them is called: `frameworks NAME URL...`.
//
// With several URLs, they are the datacenters of one cluster; the keys of the program have their home in the first.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"
)

var (
	programs = map[string]func(){}
	urls     []string
	ctx      = context.Background()
)

// program names what a file of this folder does; its name is that of the file.
func program(name string, body func()) bool {
	programs[name] = body
	return true
}

func main() {
	urls = os.Args[2:]
	programs[os.Args[1]]()
}

func home() string { return urls[0] }

func last() string { return urls[len(urls)-1] }

// must gives the value of a call that may not fail.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("Error: %#v instead of %#v", found, expected))
	}
}

func waitUntil(what string, condition func() bool) {
	for end := time.Now().Add(20 * time.Second); !condition(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			panic("Error: after 20 s still not: " + what)
		}
	}
}
