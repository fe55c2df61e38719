/**
 * Lets a process go on whose output nobody reads any more: a pager that was left, a collector of logs that has died. Node
 * would end it by that error, and Next, which keeps it from ending, would say so on the same output, again and again.
 */
export function outliveListeners() {
  for (const output of [process.stdout, process.stderr]) output.on('error', () => {});
}
