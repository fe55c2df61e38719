/** So many are asked at once: a browser keeps six connections to a server, and the page needs some. */
const AT_ONCE = 4;

/** Does the same for each of many, in their order, a few at a time. */
export async function fewAtOnce<Item>(items: Iterable<Item>, job: (item: Item) => Promise<void>): Promise<void> {
  const next = items[Symbol.iterator]();
  const worker = async () => {
    for (let step = next.next(); !step.done; step = next.next()) await job(step.value);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
