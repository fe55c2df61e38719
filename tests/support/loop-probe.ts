/**
 * How long at most this process's event loop was held by one piece of work, in milliseconds: of processor time, because
 * what a neighbour on a busy machine takes meanwhile is nobody's fault, and no more than went by, because other threads of
 * the process use processors, too (those that collect garbage).
 */
export async function longestHold(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let used = processorMs();
  let at = performance.now();
  const look = () => {
    const [usedNow, now] = [processorMs(), performance.now()];
    longest = Math.max(longest, Math.min(usedNow - used, now - at));
    [used, at] = [usedNow, now];
    if (!isOver) setImmediate(look);
  };
  look();
  await work().finally(() => {
    isOver = true;
  });
  // the turn that ended it
  await new Promise((resolve) => setImmediate(resolve));
  look();
  return longest;
}

function processorMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
