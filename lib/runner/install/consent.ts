import { createInterface } from 'node:readline';

/** Whether somebody at the terminal can be asked. */
export function canAsk(): boolean {
  return process.stdin.isTTY === true && process.stderr.isTTY === true;
}

/**
 * Asks on the terminal, where yes is what Enter says. The end of the input is a no.
 *
 * @param signal ends it: there was no answer
 */
export function isAgreed(question: string, signal: AbortSignal): Promise<boolean> {
  // Not as a `terminal`: that one takes Ctrl-C for itself, and here it ends the command as it does everywhere.
  const lines = createInterface({ input: process.stdin, terminal: false });
  return new Promise((resolve) => {
    const ask = () => process.stderr.write(`${question} [Y/n] `);
    const answer = (agreed: boolean) => {
      signal.removeEventListener('abort', stop);
      lines.removeAllListeners();
      lines.close();
      resolve(agreed);
    };
    const stop = () => {
      process.stderr.write('\n');
      answer(false);
    };
    lines.on('line', (line) => {
      const said = line.trim().toLowerCase();
      if (['', 'y', 'yes'].includes(said)) answer(true);
      else if (['n', 'no'].includes(said)) answer(false);
      else ask();
    });
    lines.once('close', stop);
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    else ask();
  });
}
