import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { claimOutbox } from '@interlude/runner/host/claim-outbox';
import { ProcessLockedError } from '@interlude/runner/host/process-lock';
import type { OutboxNotice } from '@interlude/runner/outbox/delivery';
import type { Outbox } from '@interlude/runner/outbox/outbox';
import { OutboxVersionError } from '@interlude/runner/outbox/store';
import { createClient } from '@libsql/client';
import { beforeEach, expect, onTestFinished, test } from 'vitest';
import { callCli } from '../support/cli-in-process';
import { tempDir } from '../support/temp-dir';

const SERVER_URL = 'http://127.0.0.1:9/';

let dataDir: string;
let folder: string;
let notices: OutboxNotice[];

beforeEach(async () => {
  dataDir = await tempDir();
  folder = join(dataDir, 'outboxes');
  notices = [];
});

async function claim(agentId?: string): Promise<Outbox> {
  const outbox = await claimOutbox({
    folder,
    serverKey: SERVER_URL,
    agentId,
    baseId: 'base',
    matches: async () => false,
    listeners: {
      endpoint: async () => ({ url: SERVER_URL, token: undefined }),
      sendAtOpen: false,
      onStatus: () => undefined,
      onNotice: (notice) => notices.push(notice),
    },
  });
  onTestFinished(async () => void (await outbox.stop()));
  return outbox;
}

/** Leaves the outbox of `base` as another version of Interlude writes it. */
async function leaveVersion(version: number): Promise<void> {
  await (await claim()).stop();
  const [name] = readdirSync(folder).filter((file) => file.endsWith('.db'));
  const client = createClient({ url: `file:${join(folder, name as string)}` });
  await client.execute(`PRAGMA user_version = ${version}`);
  client.close();
}

test('an unnamed runner takes the next id when another process uses the first', async () => {
  expect((await claim()).agentId).toBe('base');
  expect((await claim()).agentId).toBe('base-2');
  await expect(claim('base')).rejects.toThrow(ProcessLockedError);
  expect(notices).toEqual([]);
});

test.each([
  [1, /written by an older version of Interlude; send its records with the version that wrote it/],
  [99, /written by a newer version of Interlude; update this Interlude$/],
])(
  'an unnamed runner takes the next id when the first has a file of version %i, and says why',
  async (version, reason) => {
    await leaveVersion(version);
    expect((await claim()).agentId).toBe('base-2');
    expect(notices).toEqual([{ level: 'warn', kind: 'passed-over', message: expect.stringMatching(reason) }]);
    expect(notices[0]?.message).toMatch(/^skipped the outbox of base: /);
  },
);

test('a named runner whose file has another version is refused with the reason', async () => {
  await leaveVersion(99);
  await expect(claim('base')).rejects.toThrow(OutboxVersionError);
  expect(notices).toEqual([]);
});

test('the command of a named runner prints that reason on one line and fails', async () => {
  await leaveVersion(99);
  const args = ['runner', 'hooks', '--agent', 'base', '--url', SERVER_URL];
  const { exitCode, stderr } = await callCli(args, { INTERLUDE_DATA_DIR: dataDir });
  expect({ exitCode, lines: stderr.trim().split('\n') }).toEqual({
    exitCode: 1,
    lines: [
      expect.stringMatching(/^interlude: .* was written by a newer version of Interlude; update this Interlude$/),
    ],
  });
});
