(() => {
  const table = document.querySelector("table.audits");
  const groups = [...table.tBodies], heads = [...table.tHead.rows[0].cells];
  const held = group => [...group.rows].slice(1);  // below its head
  const rows = groups.flatMap(held);
  const number = text => {
    const found = text.match(/^(?:.*[>=] )?(-?[\d,.]+(?:e[-+]?\d+)?)(?: at .*)?$/);
    return found ? parseFloat(found[1].replaceAll(",", "")) : NaN;
  };
  const told = (row, column) => row.cells[column].textContent.trim();
  const compare = (a, b) => {
    if (!a || !b) return !a - !b;  // what is not there stands last
    const apart = number(a) - number(b);
    return Number.isNaN(apart) ? a.localeCompare(b, "en", {numeric: true}) : apart;
  };
  heads.forEach((head, column) => {
    if (head.dataset.drawn) return;
    const button = document.createElement("button");
    button.textContent = head.textContent;
    button.title = "Sort by this column";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const falling = head.getAttribute("aria-sort") === "ascending";
      heads.forEach(each => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", falling ? "descending" : "ascending");
      for (const group of groups) group.append(...held(group).sort((a, b) => {
        const order = compare(told(a, column), told(b, column));
        return falling && told(a, column) && told(b, column) ? -order : order;
      }));
    });
  });
  const [words, kind, shown] = ["words", "kind", "shown"].map(id => document.getElementById(id));
  const verdict = row => told(row, 1).split(/[:;]/)[0];
  for (const each of new Set(rows.map(verdict))) kind.append(new Option(each));
  const choose = () => {
    const wanted = words.value.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const text = [0, 1, 2].map(column => told(row, column)).join(" ").toLowerCase();
      row.hidden = !((kind.value === "" || verdict(row) === kind.value) && wanted.every(each => text.includes(each)));
    }
    for (const group of groups) group.rows[0].hidden = held(group).every(row => row.hidden);
    shown.textContent = `${rows.filter(row => !row.hidden).length} of ${rows.length} shown`;
  };
  words.addEventListener("input", choose);
  kind.addEventListener("change", choose);
  words.closest("div").hidden = false;
})();
