import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FaultServer } from '../support/fault-server';
import { tempDir } from '../support/temp-dir';
import { startTypescript } from '../support/typescript-process';

const KILLS = 20;
const RECORDS = 40_000;

test('a runner killed twenty times in mid-work loses nothing and doubles nothing', { timeout: 400_000 }, async () => {
  const server = await FaultServer.start();
  const file = join(await tempDir(), 'outbox.db');
  try {
    let killed = 0;
    for (;;) {
      const end = await life(file, server, killed < KILLS);
      if (end === 0) break;
      expect(end, 'it ends by the kill or because all is done').toBe('SIGKILL');
      killed += 1;
    }
    expect(server.ledger.messages).toEqual(Array.from({ length: RECORDS }, (_, at) => String(at + 1)));
    expect(server.ledger.lost).toBe(0);
    expect(killed).toBe(KILLS);
  } finally {
    await server.close();
  }
});

/** One life of the runner, cut off at some moment after its records have begun to arrive. */
function life(file: string, server: FaultServer, toBeKilled: boolean): Promise<number | string | null> {
  const child = startTypescript('tests/support/outbox-writer.ts', [file, server.url, String(RECORDS)], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const ended = new Promise<number | string | null>((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? code));
  });
  if (toBeKilled) {
    const arrived = server.requests.length;
    void server
      .until(() => server.requests.length > arrived)
      .then(() => {
        setTimeout(() => child.kill('SIGKILL'), Math.random() * 60);
      });
  }
  return ended;
}
