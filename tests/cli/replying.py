"""A server of chat completions on this machine, for tests of what replies may hold."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Replying(BaseHTTPRequestHandler):
    """Answers every request with a status and what `reply` returns for its body."""

    status = 200

    def reply(self, asked):
        raise NotImplementedError

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        data = json.dumps(self.reply(asked)).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


@contextmanager
def serving(handler):
    """Serve until the block ends; gives the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
