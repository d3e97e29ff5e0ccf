"""The languages of the programs: whether each is here, what it installs, and how one of its programs is started.

Everything that is downloaded or built goes below target/frameworks, with the versions that the tree pins. A folder that
was filled for other pins is filled anew.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = ROOT / "target/frameworks"
PYTHON = TARGET / "venv/bin/python"
COPY_DEPENDENCIES = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


class Language:
    """One folder of programs, of which `scenario` is what they share."""

    folder = suffix = ""
    tools = ()
    pins = ()

    def programs(self):
        files = sorted((HERE / self.folder).glob(f"*.{self.suffix}"))
        return [file for file in files if file.stem.lower() != "scenario"]

    def missing(self):
        """The first tool that is not on this machine."""
        return next((tool for tool in self.tools if shutil.which(tool) is None), None)

    def prepare(self, say):
        """Installs what is not there yet, or there for other pins, and builds."""
        folder = TARGET / self.folder
        folder.mkdir(parents=True, exist_ok=True)
        pinned, done = "".join((HERE / pin).read_text() for pin in self.pins), folder / "installed-for"
        if not (done.exists() and done.read_text() == pinned):
            say(f"installing packages for {self.folder}")
            self.install(folder)
            done.write_text(pinned)
        self.build(folder)

    def build(self, folder):
        pass

    def environment(self):
        return {}


class Python(Language):
    folder, suffix, pins = "py", "py", ["requirements.txt"]

    def install(self, folder):
        run(sys.executable, "-m", "venv", TARGET / "venv")
        # The packages that others need to be built come first.
        pins = (HERE / "requirements.txt").read_text().split()
        build = [pin for pin in pins if pin.startswith(("redis==", "setuptools==", "wheel=="))]
        run(PYTHON, "-m", "pip", "install", "-q", *build)
        words = ["--no-deps", "--no-build-isolation", "-r", HERE / "requirements.txt"]
        run(PYTHON, "-m", "pip", "install", "-q", *words)

    def version(self, package):
        pins = dict(pin.split("==") for pin in (HERE / "requirements.txt").read_text().split())
        return pins[package]

    def command(self, program):
        return [PYTHON, program]

    def environment(self):
        return {"PYTHONPATH": HERE / "py", "PYTHONDONTWRITEBYTECODE": "1"}


class Node(Language):
    folder, suffix, tools, pins = "js", "js", ("node", "npm"), ["package.json", "package-lock.json"]

    def install(self, folder):
        for name in self.pins:
            shutil.copy(HERE / name, folder / name)
        run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--silent", cwd=folder)

    def version(self, package):
        pins = json.loads((HERE / "package-lock.json").read_text())["packages"]
        return pins[f"node_modules/{package}"]["version"]

    def command(self, program):
        return ["node", program]

    def environment(self):
        return {"NODE_PATH": TARGET / "js/node_modules", "NO_DEPRECATION": "*"}


class Go(Language):
    folder, suffix, tools, pins = "go", "go", ("go",), ["go/go.mod", "go/go.sum"]

    def install(self, folder):
        run("go", "mod", "download", cwd=HERE / "go", **self.modules())

    def build(self, folder):
        run("go", "build", "-o", folder / "programs", ".", cwd=HERE / "go", **self.modules())

    def modules(self):
        return {"GOMODCACHE": TARGET / "go/modules", "GOFLAGS": "-modcacherw -buildvcs=false -mod=readonly"}

    def version(self, package):
        return re.search(rf"{re.escape(package)} v(\S+)", (HERE / "go/go.mod").read_text())[1]

    def command(self, program):
        return [TARGET / "go/programs", program.stem]


class Java(Language):
    folder, suffix, tools, pins = "java", "java", ("javac", "mvn"), ["java/pom.xml"]

    def install(self, folder):
        shutil.rmtree(folder / "lib", ignore_errors=True)
        words = [f"-Dmaven.repo.local={folder / 'repository'}", f"-DoutputDirectory={folder / 'lib'}"]
        run("mvn", "-q", "-B", "-Dstyle.color=never", *words, COPY_DEPENDENCIES, cwd=HERE / "java")

    def build(self, folder):
        shutil.rmtree(folder / "classes", ignore_errors=True)
        sources = sorted((HERE / "java").glob("*.java"))
        words = ["-nowarn", "-XDsuppressNotes", "-parameters", "-proc:none", "-d", folder / "classes"]
        run("javac", *words, "-cp", f"{folder / 'lib'}/*", *sources)

    def version(self, package):
        pom = (HERE / "java/pom.xml").read_text()
        group, artifact = package.split(":")
        return re.search(rf"<groupId>{group}</groupId><artifactId>{artifact}</artifactId>\s*<version>([^<]+)", pom)[1]

    def command(self, program):
        folder = TARGET / "java"
        return ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{folder / 'classes'}:{folder / 'lib'}/*", program.stem]


LANGUAGES = {language.folder: language for language in (Python(), Node(), Go(), Java())}


def run(*words, cwd=None, **environment):
    variables = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    subprocess.run(list(map(str, words)), check=True, cwd=cwd, env=variables)
