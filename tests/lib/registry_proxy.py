"""A proxy in front of a registry, with the faults and peculiarities that registries and networks have."""

import base64
import http.client
import json
import threading

from local_server import LocalServer


class Proxy(LocalServer):
    """Forwards to 127.0.0.1:`upstream`. `kind` is how it differs, one or several of these words:

    plain        not at all
    token        requires a token for every request; /token gives it to `user` with `password`, or to anybody if those are None
    flaky        breaks the connection after `cut` bytes of a blob, for the first two requests for it
    redirect     redirects requests for blobs to the registry itself
    elsewhere    redirects requests for blobs to `target`
    corrupt      changes a byte in every blob of more than 100 kB
    """

    def __init__(self, upstream: int, kind: str = "plain", user=None, password=None, target="", cut=200_000):
        self.upstream, self.kinds, self.user, self.password, self.target, self.cut = upstream, kind.split(), user, password, target, cut
        self.seen = []
        self.asked = {}
        self.lock = threading.Lock()
        super().__init__()

    def answer(self, request):
        with self.lock:
            self.seen.append((request.path, dict(request.headers)))
            times = self.asked[request.path] = self.asked.get(request.path, 0) + 1
        is_blob = "/blobs/" in request.path
        if request.path.startswith("/token"):
            return self.give_token(request)
        if "token" in self.kinds and request.headers.get("Authorization") != "Bearer a-token":
            challenge = f'Bearer realm="http://127.0.0.1:{self.port}/token",service="test registry",scope="repository:x:pull"'
            return self.send(request, 401, {"WWW-Authenticate": challenge})
        if is_blob and "redirect" in self.kinds:
            return self.send(request, 307, {"Location": f"http://127.0.0.1:{self.upstream}{request.path}"})
        if is_blob and "elsewhere" in self.kinds:
            return self.send(request, 307, {"Location": self.target})
        status, headers, body = self.ask_upstream(request)
        if is_blob and "corrupt" in self.kinds and len(body) > 100_000:
            body = body[:50_000] + bytes([body[50_000] ^ 1]) + body[50_001:]
        if is_blob and "flaky" in self.kinds and times < 3:
            return self.send(request, status, headers, body, self.cut)
        return self.send(request, status, headers, body)

    def give_token(self, request):
        expected = "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        if self.user is not None and request.headers.get("Authorization") != expected:
            return self.send(request, 401, {})
        return self.send(request, 200, {"Content-Type": "application/json"}, json.dumps({"token": "a-token"}).encode())

    def ask_upstream(self, request):
        connection = http.client.HTTPConnection("127.0.0.1", self.upstream)
        wanted = {name: value for name, value in request.headers.items() if name in ("Accept", "Range", "If-Range")}
        connection.request("GET", request.path, headers=wanted)
        answer = connection.getresponse()
        body = answer.read()
        kept = ("Content-Type", "Docker-Content-Digest", "Content-Range", "ETag", "Accept-Ranges")
        return answer.status, {name: value for name, value in answer.getheaders() if name in kept}, body
