/* A summary as plain text: what is known, the causes, why, and what kind of numbers these are. */
"use strict";

function summary() {
  const narrow = text => text.replace(/\u00a0/g, " ");
  const lines = [document.querySelector("h1").textContent, ""];
  lines.push(known.size ? "Findings" : "No finding is known.");
  for (const [i, state] of known) lines.push(`  ${heading(i)}: ${saying(i, state)}`);
  const said = id => $(id).textContent.replace(/\.$/, "");
  lines.push("", `${said("causes-title")}, ${$("order").selectedOptions[0].textContent} (${said("kind")})`);
  for (const i of shownCauses()) lines.push(...summaryOf(i));
  if (ordered().length > shownCauses().length) lines.push(`  and ${ordered().length - shownCauses().length} more`);
  if (chosen !== null && nats.has(chosen)) {
    lines.push("", `Why ${net.names[chosen]}`);
    for (const [f, x] of reasonsFor(chosen).filter(pair => Math.abs(pair[1]) >= FOLDED))
      lines.push(`  ${net.names[f]}: ${saying(f, known.get(f))}  ${signed(x)} nats, ${odds(x)}`);
  }
  if (other) lines.push("", `Other case: ${inWords(other.known, other.known.length) || "nothing known"}`);
  if ($("bound").textContent) lines.push("", $("bound").textContent);
  return narrow(lines.join("\n"));
}

function summaryOf(i) {
  const beside = s => other && other.answer.beliefs[i] ? `, other case ${percent(other.answer.beliefs[i][s])}` : "";
  if (certain(i)) return [`  ${net.names[i]}: ${saying(i, known.get(i))} (known)`];
  return barred(i).map(s =>
    `  ${net.names[i]}${isYesNo(i) ? "" : ` = ${net.states[i][s]}`}: ${percent(answer.beliefs[i][s])}, `
    + `before ${percent(answer.prior[i][s])}${beside(s)}`);
}

function copySummary() {
  if (!answer || !current()) return say("There is no answer to these findings yet.");
  return copy(summary(), "The summary");
}
