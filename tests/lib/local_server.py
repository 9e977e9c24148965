"""A web server on this machine for a test."""

import http.server
import threading


class LocalServer:
    """Listens on 127.0.0.1. A subclass has answer(request), which is called in a thread for each request."""

    def __init__(self):
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                owner.answer(self)

            do_HEAD = do_GET

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    @staticmethod
    def send(request, status, headers, body=b"", cut=None):
        """`cut`: breaks the connection after so many bytes of the body."""
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        if request.command == "HEAD":
            return
        if cut is None or len(body) <= cut:
            request.wfile.write(body)
        else:
            request.wfile.write(body[:cut])
            request.wfile.flush()
            request.close_connection = True
            request.connection.shutdown(2)
