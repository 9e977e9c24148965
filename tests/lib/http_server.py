#!/usr/bin/python3
"""A web server for tests; the first part of the path selects a fault.

Usage: http_server.py DIRECTORY LOG [CERTIFICATE]

Prints its port and serves DIRECTORY on 127.0.0.1 until its standard input is closed. Appends a line to LOG for each request:
the method, the path and the headers in LOGGED, separated by tabs.
"""
import base64
import collections
import hashlib
import http.server
import os
import ssl
import sys
import threading
import time

ROOT, LOG = sys.argv[1:3]
LOGGED = ("Authorization", "Range", "If-None-Match", "If-Range", "If-Modified-Since")
lock = threading.Lock()
counts = collections.Counter()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def note(self):
        with lock:
            counts[self.path] += 1
            with open(LOG, "a") as log:
                log.write("\t".join([self.command, self.path] + [self.headers.get(h) or "" for h in LOGGED]) + "\n")
            return counts[self.path]

    def begin(self, status, length, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def answer(self, status, headers=(), body=b""):
        self.begin(status, len(body), headers)
        self.wfile.write(body)

    def content(self, name):
        try:
            with open(os.path.join(ROOT, name.split("?")[0]), "rb") as file:
                return file.read()
        except OSError:
            return None

    def do_CONNECT(self):
        self.note()
        self.answer(407)

    def do_GET(self):
        count = self.note()
        if self.path.startswith("http://"):
            return self.answer(407, [("Proxy-Authenticate", "Basic realm=x")])
        mode, _, rest = self.path.lstrip("/").partition("/")
        handler = getattr(self, "mode_" + mode, None)
        if handler is None:
            return self.plain(self.path.lstrip("/"))
        return handler(rest, count)

    def plain(self, name, ranges=True, etag=True, cut=None, extra=()):
        """`cut`: closes the connection after so many bytes of the body."""
        body = self.content(name)
        if body is None:
            return self.answer(404)
        tag = '"' + hashlib.sha256(body).hexdigest()[:16] + '"'
        headers = list(extra) + ([("ETag", tag)] if etag else [])
        if etag and self.headers.get("If-None-Match") == tag:
            return self.answer(304, headers)
        wanted = self.headers.get("Range")
        status = 200
        if ranges and wanted and self.headers.get("If-Range", tag) == tag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                return self.answer(416)
            headers.append(("Content-Range", "bytes %d-%d/%d" % (start, len(body) - 1, len(body))))
            body = body[start:]
            status = 206
        self.begin(status, len(body), headers)
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.close_connection = True

    # One method for each first part of a path.

    def mode_aged(self, rest, _):
        age, _, name = rest.partition("/")
        self.plain(name, extra=[("Cache-Control", "public, max-age=" + age)])

    def mode_status(self, rest, _):
        self.answer(int(rest.split("/")[0]), [("Retry-After", "0")], b"an explanation")

    def mode_flaky(self, rest, count):
        status, times, name = rest.split("/", 2)
        if count <= int(times):
            return self.answer(int(status), [("Retry-After", "0")])
        self.plain(name)

    def mode_cut(self, rest, count, ranges=True):
        times, name = rest.split("/", 1)
        self.plain(name, ranges=ranges, cut=100_000 if count <= int(times) else None)

    def mode_cutnorange(self, rest, count):
        self.mode_cut(rest, count, ranges=False)

    def mode_wrong(self, rest, count):
        times, name = rest.split("/", 1)
        body = self.content(name)
        self.answer(200, [], body[:-1] + b"#" if count <= int(times) else body)

    def mode_wrongrange(self, rest, count):
        body = self.content(rest)
        if "Range" in self.headers:
            return self.answer(206, [("Content-Range", "bytes 5-%d/%d" % (len(body) - 1, len(body)))], body[5:])
        self.plain(rest, cut=100_000)

    def mode_lying(self, rest, _):
        more, name = rest.split("/", 1)
        body = self.content(name)
        self.begin(200, len(body) + int(more))
        self.wfile.write(body)
        self.close_connection = True

    def mode_huge(self, *_):
        self.send_response(200)
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"x" * 65536)
        except OSError:
            self.close_connection = True

    def mode_slow(self, rest, _):
        seconds, name = rest.split("/", 1)
        time.sleep(float(seconds))
        self.plain(name)

    def mode_stall(self, rest, _):
        self.begin(200, 1000)
        self.wfile.write(b"some")
        time.sleep(30)

    def mode_trickle(self, rest, _):
        """Sends a tenth every 30 ms and supports ranges."""
        body = self.content(rest)
        if body is None:
            return self.answer(404)
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
        part = [("Content-Range", "bytes %d-%d/%d" % (start, len(body) - 1, len(body)))]
        self.begin(206 if start else 200, len(body) - start, part if start else ())
        step = len(body) // 10 + 1
        for at in range(start, len(body), step):
            self.wfile.write(body[at:min(at + step, len(body))])
            time.sleep(0.03)

    def mode_auth(self, rest, _):
        expected = "Basic " + base64.b64encode(b"user:s3cret").decode()
        if self.headers.get("Authorization") != expected:
            return self.answer(401, [("WWW-Authenticate", "Basic realm=x")])
        self.plain(rest)

    def mode_redirect(self, rest, _):
        """/redirect/HOST/PATH"""
        host, path = rest.split("/", 1)
        self.answer(302, [("Location", "http://%s:%d/%s" % (host, self.server.server_port, path))])

    def mode_loop(self, *_):
        self.answer(302, [("Location", self.path)])

    def mode_t(self, rest, _):
        """/t/TOKEN/PATH"""
        token, name = rest.split("/", 1)
        if token != "to-ken":
            return self.answer(403)
        self.plain(name)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # with the default of five, connections beyond that wait a second and retry


server = Server(("127.0.0.1", 0), Handler)
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.handle_error = lambda *_: None
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdout.write("%d\n" % server.server_port)
sys.stdout.flush()
sys.stdin.read()
os._exit(0)
