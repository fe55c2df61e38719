/**
 * How long at most this process's event loop was held by one piece of work, in milliseconds of processor time: what a
 * neighbour on a busy machine takes meanwhile is nobody's fault.
 */
export async function longestHold(work: () => Promise<void>): Promise<number> {
  let longest = 0;
  let isOver = false;
  let used = processorMs();
  const look = () => {
    const now = processorMs();
    longest = Math.max(longest, now - used);
    used = now;
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
