/** Browsers allow six connections per server, and the page needs some of them. */
const MAX_PARALLEL = 4;

/** Runs a job for each item in order, a few at a time. */
export async function forEachLimited<Item>(items: Iterable<Item>, job: (item: Item) => Promise<void>): Promise<void> {
  const next = items[Symbol.iterator]();
  const worker = async () => {
    for (let step = next.next(); !step.done; step = next.next()) await job(step.value);
  };
  await Promise.all(Array.from({ length: MAX_PARALLEL }, worker));
}
