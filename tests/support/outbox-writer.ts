import { Outbox } from '@interlude/runner/outbox/outbox';

/**
 * A killable runner that enqueues the numbers 1 to N in groups, each with a cursor, and resumes from the cursor. Exits
 * when everything is acknowledged.
 *
 * Prints `open` once its outbox is open, and `delivered` or `held` after the first request.
 */
async function write(): Promise<void> {
  // if a wait never ends, the process exits with a failure
  process.exitCode = 13;
  const [file, url, last] = [process.argv[2] ?? '', process.argv[3] ?? '', Number(process.argv[4])];

  let isPastFirst = false;
  const outbox = await Outbox.open(file, {
    producerId: 'writer',
    agentId: 'writer',
    endpoint: async () => ({ url, token: process.env.WRITER_TOKEN }),
    requestTimeoutMs: Number(process.env.WRITER_TIMEOUT_MS ?? 30_000),
    onStatus: ({ lastSeq, waiting, trouble }) => {
      if (isPastFirst || (trouble === null && waiting === lastSeq)) return;
      isPastFirst = true;
      process.stdout.write(trouble === null ? 'delivered\n' : 'held\n');
    },
  });
  process.stdout.write('open\n');
  let next = Number((await outbox.cursor('next')) ?? 1);
  while (next <= last) {
    const group: Promise<void>[] = [];
    for (let index = 0; index < 20 && next <= last; index += 1, next += 1) {
      const log = { level: 'info', component: 'writer', message: String(next) } as const;
      const cursor = { name: 'next', value: String(next + 1) };
      group.push(outbox.enqueue({ kind: 'log', agentId: 'writer', occurredAt: Date.now(), log }, cursor));
    }
    await Promise.all(group);
  }
  await outbox.idle();
  await outbox.stop();
  process.exitCode = 0;
}

void write();
