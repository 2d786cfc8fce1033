// One row as one line of plain text.
export function line(row) {
  const where = `${row.server}/${row.client}`.padEnd(15);
  const how = `${row.via}${row.latency ? `@${row.latency}` : ""}${row.declare ? `+${row.declare}` : ""}${row.page === "chromium" ? " chromium" : ""}`.padEnd(14);
  const parts = [where, row.cell.padEnd(8), how];
  if (row.fail) parts.push(`FAIL(${row.fail})`);
  parts.push(row.tabs.map(tabText).join(" ; "));
  if (row.toolFires > 1) parts.push(`tools=${row.toolFires}`);
  if (row.note) parts.push(JSON.stringify(row.note));
  if (row.consoleErrors.length) parts.push(`console(${row.consoleErrors.length}): ${row.consoleErrors[0].slice(0, 90)}`);
  return parts.join(" ");
}

function tabText(tab) {
  const parts = [tab.verdict];
  if (tab.dup) parts.push(`dup${tab.dup}`);
  if (tab.gap) parts.push(`gap${tab.gap}`);
  if (tab.shrinks) parts.push(`shrink${tab.shrinks}/${tab.flickerMs}ms`);
  parts.push(`bubbles${tab.bubbles}/${tab.maxBubbles}`);
  if (tab.dupIds) parts.push(`DUPIDS${tab.dupIds}`);
  parts.push(tab.path);
  if (tab.error) parts.push(`error: ${tab.error.slice(0, 60)}`);
  return parts.join(" ");
}
