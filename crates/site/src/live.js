(() => {
  "use strict";
  const place = document.querySelector("#progress");
  if (!place) return;
  const source = new EventSource(place.dataset.events);
  const put = (selector, text) => {
    const found = document.querySelector(selector);
    if (found && found.textContent !== text) found.textContent = text;
  };
  source.addEventListener("progress", (event) => {
    const said = JSON.parse(event.data);
    put("#state", said.state);
    put("#blocks", `${said.blocks_done} of ${said.blocks_planned}`);
    put("#visits", `${said.visits_done}`);
    const bar = document.querySelector("progress");
    if (bar) bar.value = said.visits_done;
    if (said.ended) {
      source.close();
      document.querySelector("#ended").hidden = false;
    }
  });
})();
