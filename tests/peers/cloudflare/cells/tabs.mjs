// Two tabs on one conversation: the one that asked, and one that only looks on.
import { LONGER_TOOL, WITHHELD, say, shows } from "./steps.mjs";

const oneOfTwoDrops = (dropped) => async ({ cables, openTab }) => {
  const owner = await openTab();
  const observer = await openTab({ answersTools: false });
  say(owner, LONGER_TOOL);
  await shows(observer, "c6 ");
  await owner.watch.reset();
  await observer.watch.reset();
  cables.client.drop(dropped);
  await shows(owner, "c23 ", 6000);
  await shows(observer, "c23 ", 6000);
};

export default {
  "4": { ...WITHHELD, what: "the tab that looks on drops", run: oneOfTwoDrops(2) },
  "4b": { ...WITHHELD, what: "the tab that asked drops", run: oneOfTwoDrops(1) },
};
