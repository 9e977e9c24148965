"""Wheels that differ from what usual tools write. The same bytes each time."""

import base64
import csv
import hashlib
import io
import stat
import struct
import warnings
import zipfile
from pathlib import Path

CODE = b"def main():\n    print('works')\n\n\nclass Main:\n    run = staticmethod(main)\n"
PIXEL = bytes(range(256))
# Kinds of content, by the name of a file that has it.
CONTENTS = {
    "empty": b"", "text.txt": b"text\n", "binary.bin": PIXEL * 40, "windows.txt": b"a\r\nb\r\n", "module.py": b"x = 1\n",
    "latin.py": b"# -*- coding: latin-1 -*-\nx = '\xe9'\n", "undeclared.py": b"x = '\xe9'\n", "old.py": b"print 'python 2'\n", "nul.py": b"x = 1\0\n",
    "marked.py": b"\xef\xbb\xbfx = 1\n", "no-end.py": b"x = 1", "tabs.py": b"if 1:\n\tx = 1\n        y = 2\n", "deep.py": b"x = " + b"[" * 150 + b"]" * 150,
    "python": b"#!python\nprint(1)\n", "pythonw": b"#!pythonw\nprint(1)\n", "options": b"#!python -E -s\nprint(1)\n", "exact": b"#!python3.11\n1\n",
    "only": b"#!python", "windows-script": b"#!python\r\nprint(1)\r\n", "absolute": b"#!/usr/bin/python3\nprint(1)\n", "env": b"#!/usr/bin/env python\n",
    "shell": b"#!/bin/sh\necho 1\n", "blank": b"#! python\n", "binary-python": b"#!python\n\xff\0\xfe", "elf": b"\x7fELF" + PIXEL,
}
# Permissions as archives have them: with and without the kind of file, and those that no archive should have.
MODES = {
    "usual": 0o100644, "program": 0o100755, "private": 0o100600, "own-program": 0o100700, "read-only": 0o100444, "all": 0o100777, "setuid": 0o104755,
    "sticky": 0o101644, "group-program": 0o100654, "others-program": 0o100645, "none": 0, "no-kind": 0o755, "no-permissions": 0o100000,
}
PLACES = {"root": "{package}/", "purelib": "{package}-1.0.data/purelib/{package}/", "platlib": "{package}-1.0.data/platlib/{package}/",
          "data": "{package}-1.0.data/data/share/{package}/", "headers": "{package}-1.0.data/headers/", "scripts": "{package}-1.0.data/scripts/{package}-"}
SITE_PACKAGES = "lib/python3.11/site-packages"


class Odd:
    """A wheel. Every text of .dist-info and every property of the archive can be another. `refused` says who does not install it ("both",
    "us", "pip"), and `differs` at which paths of the environment the two differ, as the documentation says."""

    def __init__(self, name, files=(), *, entry_points=None, metadata=None, wheel=None, record=None, rows="", file_name=None, directory=None, version="1.0",
                 without=(), method=zipfile.ZIP_DEFLATED, change=None, refused=None, differs=()):
        self.name = f"odd_{name}".replace("-", "_")
        self.version = version
        self.directory = directory or f"{self.name}-{version}.dist-info"
        self.file_name = file_name or f"{self.name}-{version}-py3-none-any.whl"
        self.files = [(path.replace("{package}", self.name), content.encode() if isinstance(content, str) else content, mode)
                      for path, content, mode in ((*one, 0o100644)[:3] for one in files)]
        texts = {"METADATA": metadata or f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {version}\n",
                 "WHEEL": wheel or "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
                 "entry_points.txt": entry_points.replace("{package}", self.name) if isinstance(entry_points, str) else entry_points}
        self.files += [(f"{self.directory}/{file}", text.encode() if isinstance(text, str) else text, 0o100644)
                       for file, text in texts.items() if text is not None and file not in without]
        if "RECORD" not in without:
            self.files.append((f"{self.directory}/RECORD", self.record(record, rows.replace("{package}", self.name)), 0o100644))
        self.method = method
        self.change = change
        self.refused = refused
        self.differs = [path.replace("{package}", self.name).replace("{info}", f"{SITE_PACKAGES}/{self.directory}") for path in differs]

    def record(self, record, more):
        """RECORD: `record` makes it from rows of path, digest and size."""
        rows = [(path, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("="), str(len(content)))
                for path, content, _ in self.files if not path.endswith("/")]
        rows.append((f"{self.directory}/RECORD", "", ""))
        text = record(rows) if record else written(rows)
        return text if isinstance(text, bytes) else (text + more).encode()

    def write(self, directory: Path) -> Path:
        directory.mkdir(parents=True, exist_ok=True)
        buffer = io.BytesIO()
        with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(buffer, "w", self.method) as archive:  # of duplicates
            for path, content, mode in self.files:
                info = zipfile.ZipInfo(path, (2020, 2, 2, 2, 2, 2))
                info.filename = path  # ZipInfo() replaces what Windows would not have
                info.external_attr = mode << 16
                info.compress_type = self.method
                archive.writestr(info, content, compresslevel=1)
        file = directory / self.file_name
        file.write_bytes(self.change(buffer.getvalue()) if self.change else buffer.getvalue())
        return file


def written(rows, end="\n", **options):
    text = io.StringIO()
    csv.writer(text, lineterminator=end, **options).writerows(rows)
    return text.getvalue()


def patched(offset, value, mark=b"PK\1\2"):
    """Changes the archive: bytes after the first header of this kind."""

    def change(content):
        at = content.index(mark) + offset
        return content[:at] + value + content[at + len(value):]

    return change


class Pipe(io.RawIOBase):
    """Cannot go back to what was written."""

    def __init__(self, target):
        self.target = target

    def writable(self):
        return True

    def write(self, data):
        return self.target.write(data)


def streamed(content):
    """The archive as a pipe would have got it: each member's checksum and sizes follow its data."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(Pipe(out), "w") as copy:
        for info in archive.infolist():
            copied = zipfile.ZipInfo(info.filename, info.date_time)
            copied.external_attr = info.external_attr
            with copy.open(copied, "w") as member:
                member.write(archive.read(info))
    return out.getvalue()


def with_comment(content):
    return content[:-2] + struct.pack("<H", 7) + b"comment"


def with_zip64(content):
    """The end record says that the numbers are in the newer one."""
    end = content.rindex(b"PK\5\6")
    count, size, at = struct.unpack("<HLL", content[end + 10:end + 20])
    newer = b"PK\6\6" + struct.pack("<QHHLLQQQQ", 44, 45, 45, 0, 0, count, count, size, at)
    locator = b"PK\6\7" + struct.pack("<LQL", 0, end, 1)
    return content[:end] + newer + locator + b"PK\5\6" + struct.pack("<HHHHLLH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)


def placed():
    """Each kind of content in each place, with each kind of permissions."""
    for place, pattern in PLACES.items():
        for mode, bits in MODES.items():
            yield Odd(f"{place}_{mode}", [(pattern + name, content, bits) for name, content in CONTENTS.items()])


def named():
    names = {"blank": "a b", "comma": "a,b", "quote": 'a"b', "apostrophe": "a'b", "accent": "\u00e9\u00fc", "decomposed": "e\u0301", "wide": "\u6f22\U0001f40d",
             "dollar": "$HOME", "percent": "%s%%", "tilde": "~", "dash": "-rf", "dots": "...", "hidden": ".hidden", "end": "a.", "blank-end": "a ", "star": "*?[a]",
             "hash": "#a", "colon": "a:b", "backslash": "a\\b", "long": "n" * 200, "semicolon": "a;b", "braces": "{a}", "equals": "a=b", "at": "a@b",
             "upper": "A", "tab": "a\tb", "module-dir": "x.py"}
    for name, text in names.items():
        yield Odd(f"name_{name}", [(f"{{package}}/{text}", "x\n"), (f"{{package}}/{text}.d/{text}", "y\n"),
                                   (f"{{package}}-1.0.data/data/share/{{package}}/{text}", "z\n"),
                                   (f"{{package}}-1.0.data/scripts/{{package}} {text}", "#!python\n", 0o100755)])
    yield Odd("name_without_flag", [("{package}/\u00e9", "x")], change=lambda content: patched(8, b"\0\0")(patched(6, b"\0\0", b"PK\3\4")(content)),
              differs=["{info}/RECORD", *(f"{SITE_PACKAGES}/{{package}}/{name}" for name in ("\u00e9", "\u251c\u2310"))])
    yield Odd("name_longest", [("{package}/" + "n" * 255, "x")])
    yield Odd("name_deep", [("{package}/" + "d/" * 100 + "x.py", "x = 1\n"), ("{package}/" + "e" * 200 + "/" + "f" * 200 + "/x.py", "")])
    yield Odd("name_not_normal", [("./{package}/a", "x"), ("{package}//b", "x"), ("{package}/./c/d", "x"), ("{package}-1.0.data/purelib/./{package}/e", "x")])


def commanded():
    texts = {
        "extras": "[console_scripts]\n{package}-a = {package}:main [x]\n{package}-b={package}:main[x,y]\n{package}-c = {package}:main [ x, y_z ]\n",
        "class": "[console_scripts]\n{package} = {package}:Main.run\n",
        "dots": "[console_scripts]\n{package}.a-b_c+d = {package}:main\n",
        "gui": "[gui_scripts]\n{package}-gui = {package}:main\n[console_scripts]\n{package} = {package}:main\n",
        "groups": "[{package}.plugins]\na = {package}\nb c = {package} : main [x]\n[console_scripts]\n{package} = {package}:main\n[last]\nz = a.b.c\n",
        "comments": "# first\n[console_scripts]\n# second\n{package} = {package}:main\n\n\n# last",
        "windows": "[console_scripts]\r\n{package} = {package}:main\r\n\r\n",
        "blanks": "\n\n  [console_scripts]  \n\t {package}   =   {package}:main  \n",
        "again": "[console_scripts]\n{package} = {package}:nothing\n{package} = {package}:main\n[gui_scripts]\n[console_scripts]\n{package}2 = {package}:main\n",
        "both": "[gui_scripts]\n{package} = {package}:main\n[console_scripts]\n{package} = {package}:Main.run\n",
        "empty": "", "only_blanks": " \n\n", "only_group": "[console_scripts]\n", "before_group": "{package} = {package}:main\n[console_scripts]\n",
        "accent": "[console_scripts]\n{package}-\u00e9 = {package}:main\n", "absent": "[console_scripts]\n{package} = absent.module:main\n",
        "words_after": "[console_scripts]\n{package} = {package}:main  # run\n", "exe": "[console_scripts]\n{package}.exe = {package}:main\n",
        "dash": "[console_scripts]\n{package} = {package}:ma-in\n", "called": "[console_scripts]\n{package} = {package}:main()\n", "no_blanks": "[console_scripts]\n{package}={package}:main\n",
        "other_blanks": "[ console_scripts ]\n{package} = {package}:main\n[console_scripts ]\n{package} = {package}:main\n", "case": "[Console_Scripts]\nx = y:z\n",
    }
    for name, text in texts.items():
        yield Odd(f"commands_{name}", [("{package}.py", CODE)], entry_points=text, differs=["{info}/RECORD"] if name == "both" else [])
    own = [(f"{{package}}-1.0.data/scripts/{{package}}{end}", "#!python\nold\n", 0o100755) for end in ("", ".exe", "-script.py", "-script.pya", ".pya", "-SCRIPT.PY", ".txt")]
    yield Odd("commands_of_setuptools", [("{package}.py", CODE), *own], entry_points="[console_scripts]\n{package} = {package}:main\n")
    yield Odd("scripts_below", [("{package}-1.0.data/scripts/{package}/deep/script", "#!python\n", 0o100755), ("{package}-1.0.data/scripts/{package}/module.py", CODE)])


def recorded():
    def changed(number, field, value):
        def record(rows):
            rows = [list(row) for row in rows]
            rows[number][field] = value
            return written(rows)
        return record

    files = [("{package}/__init__.py", CODE), ("{package}/data,1.txt", "x"), ("{package}-1.0.data/scripts/{package}", "#!python\n", 0o100755)]
    records = {
        "wrong_digest": changed(0, 1, "sha256=" + "A" * 43), "wrong_size": changed(0, 2, "7"), "padded": changed(0, 1, "sha256=" + "A" * 43 + "="),
        "md5": changed(0, 1, "md5=" + "A" * 22), "sha512": changed(0, 1, "sha512=" + "A" * 86), "no_digest": changed(0, 1, ""), "no_size": changed(0, 2, ""),
        "not_a_size": changed(0, 2, "many"), "wrong_digest_of_script": changed(2, 1, "sha256=" + "A" * 43), "empty": lambda rows: "",
        "windows": lambda rows: written(rows, end="\r\n"), "no_end": lambda rows: written(rows).rstrip("\n"), "quoted": lambda rows: written(rows, quoting=csv.QUOTE_ALL),
        "reversed": lambda rows: written(rows[::-1]), "more_columns": lambda rows: written([(*row, "more") for row in rows]),
        "one_column": lambda rows: written([row[:1] for row in rows]), "twice": lambda rows: written(rows + rows),
        "missing": lambda rows: written(rows[1:]), "without_itself": lambda rows: written(rows[:-1]), "dot": lambda rows: written([("./" + rows[0][0], *rows[0][1:]), *rows[1:]]),
        "absolute": lambda rows: written(rows + [("/etc/passwd", "", "")]), "outside": lambda rows: written(rows + [("../../../x", "", "")]),
        "backslashes": lambda rows: written([(row[0].replace("/", "\\"), *row[1:]) for row in rows]), "blank": lambda rows: written([(row[0] + " ", *row[1:]) for row in rows]),
        "itself_with_digest": lambda rows: written([*rows[:-1], (rows[-1][0], "sha256=" + "A" * 43, "3")]), "nothing": lambda rows: written(rows) + ",,\n",
        "upper": lambda rows: written([(row[0].upper(), *row[1:]) for row in rows]), "old_mac": lambda rows: written(rows, end="\r"),
        "comma": lambda rows: written(rows) + "a,b,c,d,e\n", "quote_inside": lambda rows: written(rows) + 'a"b,,\n',
    }
    for name, record in records.items():
        yield Odd(f"record_{name}", files, record=record, differs=["{info}/RECORD"] if name == "dot" else [])
    yield Odd("record_more", files, rows="{package}/absent.py,sha256=x,1\n")
    yield Odd("record_signed", [*files, ("odd_record_signed-1.0.dist-info/RECORD.jws", "{}"), ("odd_record_signed-1.0.dist-info/RECORD.p7s", "x")])


def described():
    own = "{package}-1.0.dist-info/"
    yield Odd("info_of_installers", [("{package}.py", CODE), *((own + name, "x\n") for name in ("INSTALLER", "REQUESTED", "direct_url.json", "top_level.txt", "zip-safe"))])
    yield Odd("info_licences", [(own + "licenses/LICENSE", "x"), (own + "licenses/RECORD", "x"), (own + "sboms/a.json", "{}"), (own + "METADATA.txt", "x"), (own + "x.py", CODE)])
    yield Odd("info_long", [("{package}.py", CODE)], metadata="Metadata-Version: 2.1\nName: odd-info.LONG\nVersion: 1.0\nSummary: a\n  folded\nX: y\n\nName: other\n")
    yield Odd("info_windows", metadata="Metadata-Version: 2.1\r\nName: odd_info_windows\r\nVersion: 1.0\r\n\r\ntext\r\n")
    yield Odd("info_accents", metadata="Metadata-Version: 2.1\nName: odd_info_accents\nVersion: 1.0\nAuthor: \u00e9\n\n\u6f22\n")
    yield Odd("info_upper", directory="Odd_Info_UPPER-1.0.dist-info", file_name="Odd_Info_Upper-1.0-py3-none-any.whl", metadata="Metadata-Version: 2.1\nNAME: Odd.Info-upper\nVERSION: 1.0\n")
    yield Odd("info_platform", [("{package}/a.so", PIXEL)], wheel="Wheel-Version: 1.0\nRoot-Is-Purelib: false\n", file_name="odd_info_platform-1.0-py2.py3-none-any.whl")
    yield Odd("info_newer", wheel="Wheel-Version: 1.9\n")
    yield Odd("info_short", wheel="wheel-version: 1\n\n")
    yield Odd("info_build", file_name="odd_info_build-1.0-7abc-py3-none-any.whl")
    yield Odd("info_local", version="1.0+local.7")
    yield Odd("info_epoch", version="2!1.0rc1")
    yield Odd("info_no_version", directory="odd_info_no_version.dist-info")
    yield Odd("info_other_version", metadata="Metadata-Version: 2.1\nName: odd_info_other_version\nVersion: 2.0\n")
    yield Odd("info_egg", [("odd_info_egg-1.0.egg-info/PKG-INFO", "Name: x\n"), ("odd_info_egg.egg-info", "x\n")])


def packaged():
    """What Python does with it is odd."""
    yield Odd("pth", [("{package}.pth", "import sys; sys.odd = 1\n"), ("{package}-nspkg.pth", "import sys, types, os\n"), ("{package}_absent.pth", "/absent\nimport os\n")])
    yield Odd("namespace", [("odd_namespace/one/module.py", CODE), ("odd_namespace/one/two/three/data", "x")])
    yield Odd("stubs", [("odd_stubs-stubs/__init__.pyi", "x: int\n"), ("odd_stubs-stubs/py.typed", "")])
    yield Odd("modules", [("odd_modules.py", CODE), ("_odd_modules.abi3.so", PIXEL), ("odd_modules.pyi", "")])
    yield Odd("directories", [("{package}/", ""), ("{package}/empty/", ""), ("{package}/full/", ""), ("{package}/full/x", "x"), ("{package}-1.0.data/", ""),
                              ("{package}-1.0.data/scripts/", ""), ("{package}-1.0.data/data/share/{package}/empty/", "")])
    yield Odd("byte_code", [("{package}/__init__.py", CODE), ("{package}/__pycache__/__init__.cpython-311.pyc", "no byte-code"),
                            ("{package}/__pycache__/other.cpython-310.pyc", "old"), ("{package}/__pycache__/orphan.cpython-311.pyc", "orphan"), ("{package}/legacy.pyc", "legacy"),
                            ("{package}/__pycache__/__init__.cpython-311.opt-1.pyc", "optimised"), ("{package}/__pycache__/source.py", CODE)])
    yield Odd("byte_code_is_a_file", [("{package}/__init__.py", CODE), ("{package}/__pycache__", "a file")])
    yield Odd("lib", [("{package}-1.0.data/data/lib/{package}/module.py", CODE), ("{package}-1.0.data/data/lib/python3.11/site-packages/{package}/module.py", CODE),
                      ("{package}-1.0.data/data/lib64/{package}/other.py", CODE), ("{package}-1.0.data/data/lib64/python3.11/site-packages/{package}/other.py", CODE)],
              differs=["lib/{package}/__pycache__", *(f"lib/{{package}}/__pycache__/{name}.cpython-311.pyc" for name in ("module", "other"))])
    yield Odd("bin", [("{package}-1.0.data/data/bin/{package}", "#!python\n", 0o100755), ("{package}-1.0.data/data/bin/{package}-module.py", CODE)])
    yield Odd("etc", [("{package}-1.0.data/data/etc/{package}.conf", "x"), ("{package}-1.0.data/data/{package}", "x"), ("{package}-1.0.data/data/include/{package}.h", "x"),
                      ("{package}-1.0.data/data/share/man/man1/{package}.1", "x")])
    yield Odd("other_data", [("other-2.0.data/scripts/{package}-other", "#!python\n", 0o100755), ("other.data/purelib/{package}.py", CODE)])
    yield Odd("same_place", [("{package}/module.py", CODE), ("{package}-1.0.data/purelib/{package}/module.py", CODE), ("{package}-1.0.data/platlib/{package}/module.py", CODE)])
    yield Odd("twice", [("{package}/module.py", CODE), ("{package}/module.py", CODE), ("{package}/other.py", CODE)])
    yield Odd("command_in_data", [("{package}.py", CODE), ("{package}-1.0.data/data/bin/{package}", "old", 0o100755)], entry_points="[console_scripts]\n{package} = {package}:main\n")
    yield Odd("data_and_script", [("{package}-1.0.data/scripts/{package}", "#!python\nscript\n", 0o100755), ("{package}-1.0.data/data/bin/{package}", "data", 0o100644)])
    yield Odd("data_and_module", [("{package}/module.py", CODE), ("{package}-1.0.data/data/lib/python3.11/site-packages/{package}/module.py", "x = 'data'\n")],
              differs=["{info}/RECORD", f"{SITE_PACKAGES}/{{package}}/module.py", f"{SITE_PACKAGES}/{{package}}/__pycache__/module.cpython-311.pyc"])
    yield Odd("many", [(f"{{package}}/{i % 7}/module{i}.py", f"x = {i}\n") for i in range(300)])


def archived():
    files = [("{package}/__init__.py", CODE), ("{package}/data", PIXEL * 3000), ("{package}/empty", "")]
    yield Odd("archive_stored", files, method=zipfile.ZIP_STORED)
    yield Odd("archive_comment", files, change=with_comment)
    yield Odd("archive_zip64", files, change=with_zip64)
    yield Odd("archive_streamed", files, change=streamed)
    yield Odd("archive_no_date", files, change=patched(12, b"\0\0\0\0"))
    yield Odd("archive_last_date", files, change=patched(12, b"\xff\xff\xff\xff"))
    yield Odd("archive_of_windows", files, change=patched(5, b"\0"))


def special():
    """What both install: each has one oddity, and few files."""
    return [*commanded(), *recorded(), *described(), *packaged(), *archived()]


def systematic():
    """What both install: all combinations of places, permissions and contents, and many names."""
    return [*placed(), *named()]


def large():
    return [Odd("large", [("{package}/zeros", bytes(100 << 20)), ("{package}/pattern", PIXEL * (100 << 12))], method=zipfile.ZIP_DEFLATED)]


def refused():
    """What somebody does not install: `both`, or one of the two."""
    def bad(name, files=(), who="both", **more):
        return Odd(f"bad_{name}", [("{package}.py", CODE), *files], refused=who, **more)

    own = "{package}-1.0.data/"
    yield bad("outside", [("../x", "x")])
    yield bad("far_outside", [("{package}/../../../../x", "x")])
    yield bad("absolute", [("/tmp/x", "x")])
    yield bad("outside_data", [(own + "data/../../../x", "x")])
    yield bad("outside_scripts", [(own + "scripts/../../x", "x")])
    yield bad("unknown_scheme", [(own + "stdlib/x", "x")])
    yield bad("no_scheme", [(own + "x", "x")])
    yield bad("data_file", [("{package}.data", "x")])
    yield bad("long_name", [("n" * 256, "x")])
    yield bad("file_and_directory", [("a/b", "x"), ("a", "x")])
    yield bad("directory_and_file", [("a", "x"), ("a/b", "x")])
    yield bad("no_metadata", without=["METADATA"])
    yield bad("no_wheel", without=["WHEEL"])
    yield bad("no_record", without=["RECORD"])
    yield bad("two_infos", [("other-1.0.dist-info/METADATA", "x")])
    yield bad("info_file", [("other.dist-info", "x")])
    yield bad("other_name", metadata="Metadata-Version: 2.1\nName: other\nVersion: 1.0\n", who="us")
    yield bad("other_directory", directory="other-1.0.dist-info")
    yield bad("no_wheel_version", wheel="Generator: tests\n")
    yield bad("wheel_version", wheel="Wheel-Version: 2.0\n")
    yield bad("wheel_version_word", wheel="Wheel-Version: one\n")
    yield bad("wheel_version_half", wheel="Wheel-Version: 1.x\n")
    yield bad("command_without_function", entry_points="[console_scripts]\n{package} = {package}\n")
    yield bad("command_without_value", entry_points="[console_scripts]\n{package}\n")
    yield bad("command_of_three", entry_points="[console_scripts]\n{package} = a:b:c\n")
    yield bad("command_without_name", entry_points="[console_scripts]\n = a:b\n")
    yield bad("command_blanks", entry_points="[console_scripts]\n{package} = {package} : main\n", who="pip")
    yield bad("command_extras", entry_points="[console_scripts]\n{package} = {package}:main [x\n", who="pip")
    yield bad("command_more_extras", entry_points="[console_scripts]\n{package} = {package}:main [x, y-z]\n", who="pip")
    yield bad("group_without_value", entry_points="[console_scripts]\n{package} = {package}:main\n[other]\nword\n", who="pip")
    yield bad("command_not_utf8", entry_points=b"[console_scripts]\na = b:\xff\n")
    yield bad("record_not_utf8", record=lambda rows: b"\xff,,\n")
    yield bad("record_blank_line", record=lambda rows: "\n" + written(rows), who="pip")
    yield bad("record_open_quote", record=lambda rows: written(rows) + '"a\n', who="us")
    yield bad("metadata_not_utf8", metadata=b"Metadata-Version: 2.1\nName: odd_bad_metadata_not_utf8\nVersion: 1.0\nAuthor: \xff\n")
    yield bad("checksum", change=patched(16, b"\1\2\3\4"))
    yield bad("encrypted", change=patched(8, b"\1\0"))
    yield bad("method", change=patched(10, b"\x63\0"))
    yield bad("other_header", change=lambda content: content.replace(b"odd_bad_other_header.py", b"odd_bad_other_headex.py", 1))
    yield bad("cut", change=lambda content: content[:len(content) // 2])
    yield bad("no_archive", change=lambda content: b"no archive")
    yield bad("empty", change=lambda content: b"")
    yield bad("link", [("{package}/link", "/etc/passwd", stat.S_IFLNK | 0o777)], who="us")
    yield bad("device", [("{package}/device", "", stat.S_IFCHR | 0o666)], who="us")
    yield bad("directory_kind", [("{package}/file", "x", stat.S_IFDIR | 0o755)], who="us")
    yield bad("two_contents", [("{package}/x", "1"), ("{package}/x", "2")], who="us")
    yield bad("two_places", [("{package}/x", "1"), (own + "purelib/{package}/x", "2")], who="us")
    yield bad("up_and_down", [("{package}/a/../b", "x")], who="us")
    yield bad("backslashes", [("..\\x", "x")], who="us")
    yield bad("not_utf8", change=lambda content: content.replace(b"odd_bad_not_utf8.py", b"odd_bad_not_utf\xe9.py"), who="us")
    yield bad("bzip2", method=zipfile.ZIP_BZIP2, who="us")
    yield bad("lzma", method=zipfile.ZIP_LZMA, who="us")
    yield bad("before", change=lambda content: b"#!/bin/sh\n" + content, who="us")
    yield bad("after", change=lambda content: content + b"\n", who="us")
    yield bad("info_in_data", [(own + "purelib/other-1.0.dist-info/METADATA", "x")], who="us")
    yield bad("pyvenv", [(own + "data/pyvenv.cfg", "x")], who="us")
    yield bad("longer_directory", directory="odd_bad_longer_directory_more-1.0.dist-info")
    yield bad("command_with_slash", entry_points="[console_scripts]\na/{package} = {package}:main\n", who="us")
