// Faults that axe-core calls serious or critical, as short descriptions.
// rules: those that are asked for besides those of colours; all of them if it is null.
// Colours (of texts, and of links among words) are judged at some words for each pair of ink and ground: a page has thousands of words, and some dozen such
// pairs. Boxes with none of these words are emptied meanwhile: axe walks through all that there is.
async (rules) => {
  const colours = ["color-contrast", "link-in-text-block"];
  const grounds = new Map();
  const ground = (element) => {
    if (!element) return "page";
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), colour = style.backgroundColor, faint = style.opacity !== "1";
      const clear = /, 0\)$|transparent/.test(colour) && style.backgroundImage === "none" && !faint;
      const through = /^rgba/.test(colour) || faint;
      const own = `${colour} ${style.backgroundImage} ${style.opacity} `;
      grounds.set(element, clear ? ground(element.parentElement) : own + (through ? ground(element.parentElement) : ""));
    }
    return grounds.get(element);
  };
  const sample = () => {
    const kinds = new Map();
    for (const element of document.body.querySelectorAll("*")) {
      const written = Array.from(element.childNodes).some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
      if (!written || !element.getClientRects().length) continue;
      const style = getComputedStyle(element);
      const around = element.matches("a") ? style.textDecorationLine + getComputedStyle(element.parentElement).color : "";
      const kind = [style.color, style.fontSize, style.fontWeight, style.textShadow, around, ground(element)].join(" ");
      if (!kinds.has(kind)) kinds.set(kind, []);
      kinds.get(kind).push(element);
    }
    return [...kinds.values()].flatMap((all) => [0, 1, 2].map((third) => all[Math.floor((third * all.length) / 3)]));
  };
  const run = async (options) => {
    const found = await axe.run(document, {resultTypes: ["violations"], preload: false, ...options});
    return found.violations.filter((fault) => ["serious", "critical"].includes(fault.impact));
  };

  const off = Object.fromEntries([...colours, "region"].map((rule) => [rule, {enabled: false}]));  // region is moderate
  const others = rules ? {runOnly: {type: "rule", values: rules}} : {rules: off};
  const found = !rules || rules.length ? await run(others) : [];

  const words = sample(), held = new Set();
  for (const word of words) {
    word.dataset.sample = "";
    for (let box = word; box && !held.has(box); box = box.parentElement) held.add(box);
  }
  const aside = Array.from(document.querySelectorAll("article section > *, article tr, article li, article dd > *"));
  const emptied = aside.filter((box) => !held.has(box)).map((box) => {
    const content = document.createDocumentFragment();
    content.append(...box.childNodes);
    return [box, content];
  });
  axe.configure({rules: [{id: "color-contrast", selector: "[data-sample]"}]});
  found.push(...(await run({runOnly: {type: "rule", values: colours}})));
  words.forEach((word) => word.removeAttribute("data-sample"));
  emptied.forEach(([box, content]) => box.append(content));

  const said = (node) => `${node.html.slice(0, 140)} | ${(node.any[0]?.message || "").slice(0, 160)}`;
  return found.map((fault) => `${fault.id}: ${fault.nodes.slice(0, 4).map(said).join("\n    ")} (${fault.nodes.length})`);
}
