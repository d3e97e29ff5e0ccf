#!/usr/bin/env python3
"""Servers that stand behind replicas of the demonstration: a web server, and servers that lie.

    servers.py files DIRECTORY PORT          serves the files of a directory, until its process ends
    servers.py wrong redis|http TARGET PORT  passes requests on to TARGET's port, and changes bytes of every response
    servers.py old redis|http TARGET PORT    the same, and answers a read for ever as it answered it first
    servers.py busy MICROSECONDS PORT        answers GET of the Redis protocol after so much work, as long as the key is

A lying server is a faulty replica's application: the replica before it takes part in the agreement as all do.
"""

import functools
import http.server
import socket
import socketserver
import sys
import time


def read_redis(stream):
    """One command or reply, as it is on the wire; nothing at the end."""
    line = stream.readline()
    kind, rest = line[:1], line[1:].strip()
    if kind == b"$" and int(rest) >= 0:
        return line + stream.read(int(rest) + 2)
    if kind == b"*":
        return line + b"".join(read_redis(stream) for _ in range(max(int(rest), 0)))
    return line


def read_http(stream, is_request=False):
    """One message with a length; a response without one ends with its connection."""
    lines = [stream.readline()]
    while lines[-1] not in (b"\r\n", b""):
        lines.append(stream.readline())
    names = {line.split(b":")[0].strip().lower(): line.split(b":", 1)[1].strip() for line in lines[1:-1]}
    if b"content-length" in names:
        return b"".join(lines) + stream.read(int(names[b"content-length"]))
    return b"".join(lines) + (b"" if is_request else stream.read())


def is_read(protocol, request):
    if protocol == "redis":
        return b"\r\nGET\r\n" in request.upper()
    return request.startswith((b"GET", b"HEAD"))


def spoiled(protocol, response):
    """The same length, so that everything but the answer looks right."""
    if protocol == "redis":
        head, _, body = response.partition(b"\r\n")
        if not response.startswith(b"$") or not body:
            return response
        return head + b"\r\n" + b"x" * (len(body) - 2) + b"\r\n"
    head, _, body = response.partition(b"\r\n\r\n")
    return head + b"\r\n\r\n" + b"x" * len(body)


class Liar(socketserver.StreamRequestHandler):
    how, protocol, target, first = "wrong", "redis", 0, {}

    def handle(self):
        while request := self.read_request():
            response = self.ask(request)
            if is_read(self.protocol, request):
                if self.how == "wrong":
                    response = spoiled(self.protocol, response)
                else:
                    response = self.first.setdefault(request, response)
            self.wfile.write(response)
            if self.protocol == "http":
                return

    def read_request(self):
        return read_redis(self.rfile) if self.protocol == "redis" else read_http(self.rfile, True)

    def ask(self, request):
        with socket.create_connection(("127.0.0.1", self.target), 10) as server:
            server.sendall(request)
            with server.makefile("rb") as stream:
                return read_redis(stream) if self.protocol == "redis" else read_http(stream)


class Busy(socketserver.StreamRequestHandler):
    work_s = 0.0

    def handle(self):
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while request := read_redis(self.rfile):
            until = time.thread_time() + self.work_s
            while time.thread_time() < until:
                pass
            self.wfile.write(b":0\r\n" if b"DBSIZE" in request else b"$8\r\nresponse\r\n")


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def main():
    kind, *rest, port = sys.argv[1:]
    handler = {"files": Quiet, "wrong": Liar, "old": Liar, "busy": Busy}[kind]
    if kind == "files":
        handler = functools.partial(Quiet, directory=rest[0])
    elif kind == "busy":
        Busy.work_s = int(rest[0]) / 1e6
    else:
        Liar.how, Liar.protocol, Liar.target = kind, rest[0], int(rest[1])
    with Server(("127.0.0.1", int(port)), handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
