// Makes tables sortable, searchable and short, and adds the choice of a theme. The page is complete
// without it, except for graphs.
"use strict";
(() => {
  const make = (name, properties, ...children) => {
    const element = Object.assign(document.createElement(name), properties);
    element.append(...children);
    return element;
  };

  // A cell's number if it has one, otherwise its text.
  const keyOf = (cell) => cell.dataset.n === undefined ? cell.textContent : Number(cell.dataset.n);
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b, "en", {numeric: true});
  };

  for (const figure of document.querySelectorAll("figure.table")) {
    const body = figure.querySelector("tbody");
    const rows = [...body.rows];
    const shown = Number(figure.dataset.shown) || rows.length;
    let all = rows.length <= shown;
    let filter = "";
    const said = make("span", {className: "soft"});
    said.setAttribute("role", "status");
    const more = make("button", {type: "button", textContent: "Show all"});
    const show = () => {
      let matching = 0, visible = 0;
      for (const row of body.rows) {
        const matches = !filter || row.textContent.toLowerCase().includes(filter);
        matching += matches;
        row.hidden = !matches || (!all && visible >= shown);
        visible += !row.hidden;
      }
      said.textContent = visible < rows.length ? `${visible} of ${rows.length} rows` : "";
      more.hidden = all || matching <= shown;
    };
    more.addEventListener("click", () => { all = true; show(); });
    if (rows.length > 10) {
      const search = make("input", {type: "search", placeholder: "Filter rows"});
      search.setAttribute("aria-label", "Filter rows");
      search.addEventListener("input", () => { filter = search.value.trim().toLowerCase(); show(); });
      figure.querySelector(".scroll").before(make("div", {className: "tools"}, search, more, said));
    }
    show();
    figure.querySelectorAll("th").forEach((head, column) => {
      const button = make("button", {type: "button"}, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        // The first click puts large numbers first, and texts in their order.
        const before = head.getAttribute("aria-sort");
        const descending = before ? before === "ascending" : head.classList.contains("n");
        figure.querySelectorAll("th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const keyed = [...body.rows].map((row) => [keyOf(row.cells[column]), row]);
        keyed.sort((a, b) => descending ? compare(b[0], a[0]) : compare(a[0], b[0]));
        body.append(...keyed.map(([, row]) => row));
        show();
      });
    });
  }

  const themes = ["auto", "light", "dark"];
  let theme = 0;
  const toggle = make("button", {type: "button", className: "theme", textContent: "Theme: auto"});
  toggle.addEventListener("click", () => {
    theme = (theme + 1) % themes.length;
    if (theme) document.documentElement.dataset.theme = themes[theme];
    else delete document.documentElement.dataset.theme;
    toggle.textContent = `Theme: ${themes[theme]}`;
    document.dispatchEvent(new Event("theme"));
  });
  document.querySelector("nav").append(toggle);
})();
