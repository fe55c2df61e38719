import { Outbox } from '@interlude/runner/outbox/outbox';
import { stepOf } from './numbered-work';

/**
 * A killable runner: performs numbered work (numbered-work.ts) through an outbox file in small pieces, each stored with
 * its progress, and resumes there after a restart.
 *
 * Runs until its parent sends `finish`. Then it completes its step, waits for all acknowledgements, reports its number
 * of steps and exits with 0.
 */
async function work(): Promise<void> {
  const [agentId, file, url] = process.argv.slice(2) as [string, string, string];

  const outbox = await Outbox.open(file, {
    producerId: agentId,
    agentId,
    endpoint: async () => ({ url, token: process.env.RUNNER_TOKEN }),
    onStatus: ({ lastSeq, waiting, state, trouble }) =>
      process.send?.({ acknowledged: lastSeq - waiting, outbox: JSON.stringify({ state, trouble, waiting }) }),
    onNotice: (notice) => process.stderr.write(`${agentId}: ${notice.message}\n`),
  });

  let finishing = false;
  process.on('message', (message) => {
    if (message === 'finish') finishing = true;
    // skip the backoff after a server restart
    outbox.kick();
  });
  process.once('disconnect', () => process.exit(1));

  let [step, done] = JSON.parse((await outbox.cursor('work')) ?? '[1,0]') as [number, number];
  while (!finishing || done > 0) {
    const { records } = stepOf(agentId, step);
    // 1 to 7 at once, so that a kill can fall inside a message
    const next = Math.min(done + 1 + ((step * 31 + done) % 7), records.length);
    const piece = records.slice(done, next);
    [step, done] = next === records.length ? [step + 1, 0] : [step, next];
    await outbox.enqueue(piece, { name: 'work', value: JSON.stringify([step, done]) });
    // about as fast as a dozen streaming agents; faster, the file would become too large to read back
    await new Promise((resolve) => setTimeout(resolve, 15));
  }
  await outbox.idle();
  await outbox.stop();
  process.send?.({ steps: step - 1 }, () => process.exit(0));
}

void work();
