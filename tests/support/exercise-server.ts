import type { ErrorBody } from '@interlude/protocol/errors';
import { foldItems } from '@interlude/protocol/projections/items';
import { EMPTY_TRANSCRIPT, foldTranscript } from '@interlude/protocol/projections/transcript';
import { CommandHub } from '@/lib/server/commands/command-hub';
import { LogKeeper } from '@/lib/server/log-store/log-keeper';
import { callRoute } from './call-route';
import { FrameReader } from './frames';
import type { InProcessTarget } from './ingest-target';

/**
 * Runs every read, every timer's sweep and every user action. None may fail, whatever was stored.
 *
 * @returns each response of 500 and above, and each sweep that threw
 */
export async function exerciseServer(target: InProcessTarget): Promise<string[]> {
  const failures: string[] = [];
  const open = async (path: string, body?: object, method: 'GET' | 'POST' | 'PUT' = body ? 'POST' : 'GET') => {
    const response = await callRoute(target.context, method, path, { body });
    if (response.status < 500) return response;
    const { error } = (await response.json()) as ErrorBody;
    failures.push(`${method} ${path}: ${response.status} ${error.message}`);
    return response;
  };
  const ask = async (...asked: Parameters<typeof open>) => {
    const response = await open(...asked);
    if (!response.bodyUsed) await response.text();
  };
  const sweep = async (name: string, work: () => Promise<void>) => {
    await work().catch((error) => failures.push(`${name}: ${error}`));
  };

  const rows = async <Row>(sql: string) => (await target.database.reader.execute(sql)).rows as unknown as Row[];
  const sessions = await rows<{ id: string }>('SELECT id FROM sessions');
  const agents = await rows<{ id: string }>('SELECT id FROM agents');
  const tasks = await rows<{ session_id: string; id: string }>('SELECT session_id, id FROM tasks');
  const turns = await rows<{ session_id: string; id: string }>('SELECT session_id, id FROM turns');
  await ask('/sessions');
  await ask('/agents');
  for (const agent of agents.map(({ id }) => `/agents/${encodeURIComponent(id)}`)) {
    for (const what of ['', '/log-level', '/reply-obligations', '/logs/components', '/parked']) await ask(agent + what);
    for (const query of ['', 'q=e', 'regex=.', 'at=5', 'component=%EF%BF%BD', 'level=error'])
      await ask(`${agent}/logs?${query}`);
    await ask(`${agent}/logs/download`);
    await ask(`${agent}/log-level`, { level: 'debug', ttlSeconds: 1 }, 'PUT');
  }
  for (const { id } of sessions) {
    const session = `/sessions/${encodeURIComponent(id)}`;
    for (const what of ['', '/transcript', '/tasks', '/turn-at?at=1795170000001']) await ask(session + what);
    const turn = turns.find((one) => one.session_id === id);
    if (turn !== undefined) await ask(`${session}/transcript?${new URLSearchParams({ before: turn.id })}`);
    await ask(`${session}/messages`, { text: 'half \ud83d', clientId: crypto.randomUUID() });
    await ask(`${session}/interrupt`, {});
    await ask(`${session}/requests/q1`, { behavior: 'deny', message: 'half \ude00' });
    await ask(`${session}/obligations/m1/waive`, { reason: '\ud83d' });
  }
  for (const { session_id, id } of tasks) {
    const task = `/sessions/${encodeURIComponent(session_id)}/tasks/${encodeURIComponent(id)}`;
    await ask(task);
    await ask(`${task}/stop`, {});
  }

  for (const topic of [
    'fleet',
    ...sessions.map(({ id }) => `session:${id}`),
    ...agents.map(({ id }) => `logs:${id}`),
  ]) {
    const { status, body } = await open(`/stream?${new URLSearchParams({ topic, after: '0' })}`);
    if (status !== 200 || body === null) continue;
    const reader = new FrameReader(body);
    const frames = await reader.until((all) => all.some(({ event }) => event === 'up-to-date'));
    const entries = frames.flatMap((frame) =>
      frame.event === 'session-event' ? [{ position: frame.id ?? '0', ...frame.data }] : [],
    );
    await sweep(`folding ${topic}`, async () => {
      foldItems([], entries);
      foldTranscript(EMPTY_TRANSCRIPT, entries);
    });
    await reader.cancel();
  }
  for (const { id: agentId } of agents) {
    const { status, body } = await open(`/agents/${encodeURIComponent(agentId)}/commands?runner=r&startedAt=1`);
    if (status !== 200 || body === null) continue;
    const reader = new FrameReader(body);
    await reader.until((all) => all.some(({ event }) => event === 'up-to-date'));
    await reader.cancel();
  }
  let laterMs = 0;
  const now = () => target.context.now() + laterMs;
  const server = { database: target.database, now, steady: now };
  // reuse one hub, because messages expire only on a continuous clock
  const hub = new CommandHub(server);
  for (laterMs of [0, 20_000, 40_000, 3_600_000, 30 * 86_400_000]) {
    await sweep('the sweep of commands', () => hub.sweep());
    const keeper = new LogKeeper(server, { maxAgeMs: 86_400_000, maxBytes: 1e9 });
    await sweep('indexing', () => keeper.indexAll());
    await sweep('retention', () => keeper.removeOld());
    keeper.close();
  }
  target.context.commands.close();
  return failures;
}
