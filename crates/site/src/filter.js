(() => {
  "use strict";
  const form = document.querySelector("form.filter");
  if (!form) return;
  document.documentElement.classList.add("scripts");
  const rows = [...document.querySelectorAll("[data-text]")];
  const count = document.querySelector("#count");
  const fields = [...form.elements].filter((field) => field.name);
  const asked = new URLSearchParams(location.search);
  for (const field of fields) if (asked.has(field.name)) field.value = asked.get(field.name);
  const apply = () => {
    const words = (form.elements.q?.value ?? "").toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = fields.filter((field) => field.name !== "q" && field.value);
    let shown = 0;
    for (const row of rows) {
      const fits =
        words.every((word) => row.dataset.text.includes(word)) &&
        chosen.every((field) => (row.dataset[field.name] || "").split("|").includes(field.value));
      row.hidden = !fits;
      if (fits) shown += 1;
    }
    if (count) count.textContent = shown === rows.length ? `${rows.length}` : `${shown} of ${rows.length}`;
    // What else the address says stays: which versions are compared, for example.
    const wanted = new URLSearchParams(location.search);
    for (const field of fields) field.value ? wanted.set(field.name, field.value) : wanted.delete(field.name);
    const query = wanted.toString();
    try {
      history.replaceState(null, "", query ? `?${query}` : location.pathname);
    } catch {
      // Some browsers refuse it for files.
    }
  };
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    apply();
  });
  apply();
})();
