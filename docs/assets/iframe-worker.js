// Search in pages opened from a folder: a browser starts no worker from a file, so a frame runs it.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.srcdoc = `<script src="${url}"></script>`;
      this.loaded = new Promise((resolve) => (frame.onload = resolve)).then(() => {
        frame.contentWindow.postMessage = (data) => this.onmessage?.({ data });
        return frame.contentWindow;
      });
      this.terminate = () => frame.remove();
      document.body.append(frame);
    }
    postMessage(message) {
      const data = structuredClone(message); // the search changes what it gets
      this.loaded.then((frame) => frame.onmessage({ data }));
    }
  };
}
