import { join } from 'node:path';
import type { NewToken } from '@interlude/protocol/access';
import type { Command } from '@interlude/protocol/commands';
import type { TranscriptPage } from '@interlude/protocol/read-models';
import { CommandClient, type CommandClientOptions, type CommandLink } from '@interlude/runner/host/command-client';
import { type CommandOutcome, SeenCommands } from '@interlude/runner/host/seen-commands';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { LocalDashboard } from '../support/local-dashboard';
import { messages } from '../support/operator';
import { tempDir } from '../support/temp-dir';

/** The runner's command client against the dashboard's real handlers. */

let dashboard: LocalDashboard;
beforeAll(async () => {
  dashboard = await LocalDashboard.start();
});
afterAll(() => dashboard.close());

let agents = 0;
let agentId: string;
let sessionId: string;
let file: string;

beforeEach(async () => {
  agents += 1;
  agentId = `agent-${agents}`;
  sessionId = `session-${agents}`;
  file = join(await tempDir(), 'outbox.db');
  dashboard.cutsOff = () => false;
  const outbox = await openOutbox();
  await outbox.enqueue({ kind: 'status', agentId, sessionId, occurredAt: Date.now(), status: { kind: 'test' } });
  await outbox.idle();
  await outbox.stop();
});

function openOutbox(): Promise<Outbox> {
  return Outbox.open(file, { producerId: agentId, agentId, endpoint: dashboard.endpoint });
}

/** The command part of a runner. `acted` lists handled commands, with a star for repeats. */
async function runner(options: Partial<CommandClientOptions> = {}) {
  const outbox = await openOutbox();
  const acted: string[] = [];
  const fenced: string[] = [];
  const client = new CommandClient({
    endpoint: dashboard.endpoint,
    agentId,
    runnerId: `runner-${Math.random()}`,
    startedAt: Date.now(),
    seen: await SeenCommands.load(outbox, Date.now()),
    onFenced: (message) => void fenced.push(message),
    ...options,
    act: async (command, again) => {
      acted.push(nameOf(command) + (again ? '*' : ''));
      return (await options.act?.(command, again)) ?? { state: 'delivered' };
    },
  });
  client.start();
  let isStopped = false;
  const stop = async () => {
    if (isStopped) return;
    isStopped = true;
    await client.stop();
    await outbox.stop();
  };
  onTestFinished(stop);
  return { client, acted, fenced, stop };
}

const nameOf = (command: Command) => (command.type === 'message' ? command.body.text : command.type);

let sent = 0;
async function message(text: string): Promise<string> {
  sent += 1;
  const body = { text, clientId: `client-${sent}` };
  return (await dashboard.request<{ messageId: string }>(`/sessions/${sessionId}/messages`, body)).messageId;
}

async function deliveries(): Promise<(string | null)[]> {
  const { turns } = await dashboard.request<TranscriptPage>(`/sessions/${sessionId}/transcript`);
  return messages(turns, 'user').map(({ delivery }) => delivery);
}

const eventually = (look: () => unknown) => expect.poll(look, { interval: 10 });

describe('commands', () => {
  test('arrive in order, queued before the runner connected or sent later, and show as delivered', async () => {
    await message('first');
    await message('second');
    const { acted } = await runner();
    await eventually(() => acted).toEqual(['first', 'second']);
    await message('third');
    await eventually(() => acted).toEqual(['first', 'second', 'third']);
    await eventually(deliveries).toEqual(['delivered', 'delivered', 'delivered']);
  });

  test('are acknowledged by the next process, and not handled again, when an acknowledgement was lost', async () => {
    dashboard.cutsOff = (path) => path.endsWith('/ack');
    const before = await runner();
    await message('once');
    await eventually(() => before.acted).toEqual(['once']);
    await before.stop();
    expect(await deliveries()).toEqual(['queued']);
    dashboard.cutsOff = () => false;
    const after = await runner();
    await eventually(deliveries).toEqual(['delivered']);
    expect(after.acted).toEqual([]);
  });

  test('are resumed at once by the next process, marked as started', async () => {
    const before = await runner({ act: () => new Promise(() => {}) });
    await message('cut off');
    await eventually(() => before.acted).toEqual(['cut off']);
    await before.stop();
    const after = await runner();
    await eventually(() => after.acted).toEqual(['cut off*']);
    await eventually(deliveries).toEqual(['delivered']);
  });

  test('don’t wait for a slow one', async () => {
    let finish: (outcome: CommandOutcome) => void = () => {};
    const { acted } = await runner({
      act: (command) =>
        nameOf(command) === 'slow'
          ? new Promise((resolve) => (finish = resolve))
          : Promise.resolve({ state: 'delivered' }),
    });
    await message('slow');
    await message('quick');
    await eventually(deliveries).toEqual(['queued', 'delivered']);
    finish({ state: 'delivered' });
    await eventually(deliveries).toEqual(['delivered', 'delivered']);
    expect(acted).toEqual(['slow', 'quick']);
  });

  test('show the reason of a failure in the transcript, also after delivery', async () => {
    const { client } = await runner({
      act: async (command) => {
        if (nameOf(command) === 'refused') throw new Error('the agent has ended');
        return { state: 'delivered' };
      },
    });
    await message('refused');
    const accepted = await message('taken');
    await eventually(deliveries).toEqual(['failed', 'delivered']);
    await client.report(accepted, { state: 'failed', reason: 'it was discarded' });
    await eventually(deliveries).toEqual(['failed', 'failed']);
    const { turns } = await dashboard.request<TranscriptPage>(`/sessions/${sessionId}/transcript`);
    const reasons = messages(turns, 'user').map(({ deliveryReason }) => deliveryReason);
    expect(reasons).toEqual(['the agent has ended', 'it was discarded']);
  });

  test('survive an outage of the dashboard', async () => {
    const links: string[] = [];
    const { acted } = await runner({
      onLink: ({ state }) => void links.push(state),
      clock: { now: Date.now, random: () => 0, after: afterAHundredth },
    });
    await eventually(() => links).toEqual(['connected']);
    await dashboard.down();
    await eventually(() => links).toContain('waiting');
    await dashboard.up();
    await eventually(() => links.at(-1)).toBe('connected');
    await message('after');
    await eventually(() => acted).toEqual(['after']);
  });

  test('are fenced from the older runner when a newer one of the same agent connects', async () => {
    let finish: (outcome: CommandOutcome) => void = () => {};
    const older = await runner({ startedAt: 1_000, act: () => new Promise((resolve) => (finish = resolve)) });
    await message('taken by the older');
    await eventually(() => older.acted).toEqual(['taken by the older']);
    const file2 = join(await tempDir(), 'outbox.db');
    file = file2;
    const newer = await runner({ startedAt: 2_000 });
    await eventually(() => older.fenced).toHaveLength(1);
    expect(older.fenced[0]).toContain('has taken over');
    finish({ state: 'failed', reason: 'said by the one that was fenced' });
    await eventually(deliveries).toEqual(['delivered']);
    expect(newer.acted).toEqual(['taken by the older']);
    expect(older.client.link.state).toBe('fenced');
  });

  test('are not accepted with a refused token, which is reported and retried', async () => {
    let token = 'a-token-that-was-revoked';
    const links: { state: string; cause?: string }[] = [];
    const { acted } = await runner({
      endpoint: async () => ({ url: dashboard.url, token }),
      onLink: (link) => void links.push(link),
      clock: { now: Date.now, random: () => 0, after: afterAHundredth },
    });
    await eventually(() => links[0]).toMatchObject({ state: 'waiting', cause: 'unauthorized' });
    await message('meanwhile');
    expect(acted).toEqual([]);
    token = dashboard.token;
    await eventually(() => acted).toEqual(['meanwhile']);
  });
});

describe('the token of a runner', () => {
  const tokenOf = (body: object) => dashboard.request<NewToken>('/tokens', body);
  const revoke = ({ credential }: NewToken) => dashboard.request(`/credentials/${credential.id}`, undefined, 'DELETE');

  /** `waits`: every delay that the client requested. */
  async function withToken(token: () => string) {
    const links: CommandLink[] = [];
    const waits: number[] = [];
    let requests = 0;
    const { acted } = await runner({
      clock: {
        now: Date.now,
        random: () => 0.5,
        after: (ms, run) => {
          waits.push(ms);
          const timer = setTimeout(run, ms);
          return () => clearTimeout(timer);
        },
      },
      endpoint: async () => {
        requests += 1;
        return { url: dashboard.url, token: token() };
      },
      onLink: (link) => void links.push(link),
    });
    return { links, acted, waits, requests: () => requests };
  }

  test('closes its stream when it is revoked, is retried once, and then left alone', async () => {
    const own = await tokenOf({ agent: agentId });
    const { links, acted, waits, requests } = await withToken(() => own.token);
    await eventually(() => links.at(-1)?.state).toBe('connected');
    await message('before');
    await eventually(() => acted).toEqual(['before']);
    await eventually(deliveries).toEqual(['delivered']);
    const before = requests();
    await revoke(own);
    await eventually(() => links.at(-1)).toMatchObject({
      state: 'waiting',
      cause: 'unauthorized',
      message: expect.stringMatching(/revoked/),
    });
    expect(requests() - before).toBe(1);
    expect(waits.at(-1)).toBeGreaterThanOrEqual(15_000);
  });

  test('is replaced without interruption when it is rotated', async () => {
    const old = await tokenOf({ agent: agentId });
    const next = await tokenOf({ agentPrefix: 'agent-' });
    let token = old.token;
    const { links, acted } = await withToken(() => token);
    await eventually(() => links.at(-1)?.state).toBe('connected');
    token = next.token;
    await revoke(old);
    await eventually(() => links.filter(({ state }) => state === 'connected')).toHaveLength(2);
    await message('after');
    await eventually(() => acted).toEqual(['after']);
    expect(links.some(({ state }) => state === 'waiting')).toBe(false);
  });

  test('is reported as another agent’s, and not retried', async () => {
    const foreign = await tokenOf({ agent: 'somebody-else' });
    const { links, waits } = await withToken(() => foreign.token);
    await eventually(() => links.at(-1)).toEqual({
      state: 'waiting',
      cause: 'unauthorized',
      message: `the token does not cover the agent "${agentId}"`,
    });
    expect(waits.at(-1)).toBeGreaterThanOrEqual(15_000);
  });

  test('is refused with what to do when it only permits reading', async () => {
    const viewer = await tokenOf({ role: 'viewer' });
    const { links } = await withToken(() => viewer.token);
    await eventually(() => links.at(-1)).toMatchObject({
      cause: 'unauthorized',
      message: expect.stringContaining('interlude tokens create --agent'),
    });
  });
});

/** Waits a hundredth of the time, without making a stream look silent. */
function afterAHundredth(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, ms > 40_000 ? ms : ms / 100);
  return () => clearTimeout(timer);
}
