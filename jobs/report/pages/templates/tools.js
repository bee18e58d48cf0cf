"use strict";
// A filter and sorting for the long tables of a page. It moves and hides rows that are in the page, reads nothing else, and puts
// names in as text only. Without it, and on paper, every row is shown in the order of the page.
const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

function made(tag, words = "", parts = []) {
  const element = document.createElement(tag);
  element.append(words, ...parts);
  return element;
}

function compared(a, b) {
  if (typeof a === "string") return collator.compare(a, b);
  for (const [place, value] of a.entries()) if (value !== b[place]) return value < b[place] ? -1 : 1;
  return 0;
}

// What a cell is sorted by: numbers, null for none, or its text.
function valueOf(cell) {
  const { sort } = cell.dataset;
  if (sort === undefined) return cell.textContent.trim();
  return sort === "" ? null : sort.split(" ").map(Number);
}

function equip(region) {
  const [one, many] = region.dataset.tools.split(" ");
  const body = region.querySelector("tbody");
  const heads = [...region.querySelectorAll("thead th")];
  const rows = [...body.rows].map((row) => ({
    row,
    text: [...row.cells].filter((cell) => !cell.querySelector("svg")).map((cell) => cell.textContent).join("\n").toLowerCase(),
    answer: row.querySelector(".badge")?.textContent ?? "",
    values: [...row.cells].map(valueOf),
  }));
  const numbers = heads.map((_, column) => rows.some(({ values }) => typeof values[column] !== "string"));
  const first = heads.findIndex((head) => head.ariaSort);
  let sorted = { column: first, down: true };

  const field = made("input");
  field.type = "search";
  field.autocomplete = "off";
  field.spellcheck = false;
  const answers = made("select", "", [new Option(`all ${many}`, "")]);
  for (const answer of new Set(rows.map((entry) => entry.answer))) {
    const count = rows.filter((entry) => entry.answer === answer).length;
    if (answer) answers.append(new Option(`${answer} (${count.toLocaleString("en")})`, answer));
  }
  const order = made("select");
  heads.forEach((head, column) => {
    const ways = numbers[column] ? [["most first", true], ["least first", false]] : [["A to Z", false], ["Z to A", true]];
    for (const [words, down] of ways) {
      const shown = column === first ? (down ? "most dangerous first" : "least dangerous first") : `${head.textContent}, ${words}`;
      order.append(new Option(shown, `${column} ${down}`));
    }
  });
  const count = made("output");

  function filter() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { row, text, answer } of rows) {
      const kept = words.every((word) => text.includes(word)) && (!answers.value || answer === answers.value);
      row.classList.toggle("off", !kept);
      shown += kept;
    }
    const of = rows.length === 1 ? one : many;
    count.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} ${of}`;
  }

  function put(entries) {
    const all = document.createDocumentFragment();
    for (const { row } of entries) all.append(row);
    body.append(all);
  }

  function inOrder({ column, down }) {
    return [...rows].sort(({ values: { [column]: a } }, { values: { [column]: b } }) => {
      if (a === null || b === null) return (a === null) - (b === null);
      return down ? compared(b, a) : compared(a, b);
    });
  }

  function sort(column, down) {
    sorted = { column, down };
    heads.forEach((head, other) => {
      if (other === column) head.ariaSort = down ? "descending" : "ascending";
      else head.removeAttribute("aria-sort");
    });
    order.value = `${column} ${down}`;
    put(inOrder(sorted));
  }

  heads.forEach((head, column) => {
    const button = made("button", head.textContent);
    button.type = "button";
    button.addEventListener("click", () => sort(column, sorted.column === column ? !sorted.down : numbers[column]));
    head.replaceChildren(button);
  });
  field.addEventListener("input", filter);
  answers.addEventListener("change", filter);
  order.addEventListener("change", () => {
    const [column, down] = order.value.split(" ");
    sort(Number(column), down === "true");
  });
  addEventListener("beforeprint", () => put(rows));
  addEventListener("afterprint", () => put(inOrder(sorted)));

  const ordering = made("label", "Order ", [order]);
  ordering.className = "order";
  const tools = made("div", "", [made("label", "Filter ", [field]), made("label", "Show ", [answers]), ordering, count]);
  tools.className = "tools";
  tools.setAttribute("role", "group");
  tools.setAttribute("aria-label", "Filter and sort");
  region.before(tools);
  sort(sorted.column, sorted.down);
  filter();
}

document.querySelectorAll("[data-tools]").forEach(equip);
