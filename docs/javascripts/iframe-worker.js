/* Search on pages that are opened from the file system, where browsers let no page begin a worker: the script of the
   search runs in a hidden frame instead, and messages go through the two windows. */
if (window.location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      this.waiting = [];
      const frame = document.createElement("iframe");
      frame.hidden = true;
      // Inside, what a worker has: `postMessage` to the page, and `importScripts`, here one script after the other.
      const inside = `<script>
        postMessage = message => parent.dispatchEvent(new MessageEvent("of the search", { data: message }));
        importScripts = (...scripts) => scripts.reduce((before, source) => before.then(() => new Promise(loaded => {
          const script = document.createElement("script");
          script.src = source;
          script.onload = loaded;
          document.head.append(script);
        })), Promise.resolve());
      <\/script><script src="${address}"><\/script>`;
      window.addEventListener("of the search", ({ data }) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      });
      frame.addEventListener("load", () => {
        this.window = frame.contentWindow;
        this.waiting.splice(0).forEach(message => this.postMessage(message));
      });
      frame.srcdoc = inside;
      document.body.append(frame);
    }

    postMessage(message) {
      if (this.window) this.window.dispatchEvent(new MessageEvent("message", { data: message }));
      else this.waiting.push(message);
    }

    terminate() {}
  };
}
