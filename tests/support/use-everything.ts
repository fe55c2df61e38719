import { postRequestAnswer } from '@/lib/commands/answer-request';
import { postInterrupt, postTaskStop } from '@/lib/commands/ask-agent';
import { CommandHub } from '@/lib/commands/command-hub';
import { getCommands } from '@/lib/commands/get-commands';
import { putLogLevel } from '@/lib/commands/put-log-level';
import { postMessage } from '@/lib/commands/send-message';
import { postWaive } from '@/lib/commands/waive-obligation';
import { stream } from '@/lib/fan-out/stream';
import { LogKeeper } from '@/lib/log-store/log-keeper';
import { foldItems } from '@/lib/projections/items';
import { EMPTY_TRANSCRIPT, foldTranscript } from '@/lib/projections/transcript';
import { type ErrorBody, withErrors } from '@/lib/protocol/errors';
import * as read from '@/lib/queries/read-routes';
import { FrameReader } from './frames';
import type { InProcessTarget } from './ingest-target';

type Ids = Record<string, string>;
type Handler = (request: Request, server: InProcessTarget['context'], ids: Ids) => Promise<Response>;

/**
 * Asks a server for everything it has, sweeps it as its timers would, and asks of its agents what people can: whatever
 * was stored, nothing of this may fail.
 *
 * @returns each answer of 500 and above, and each sweep that threw
 */
export async function useEverything(target: InProcessTarget): Promise<string[]> {
  const failures: string[] = [];
  const ask = async (handler: Handler, ids: Ids = {}, query = '', body?: object): Promise<Response> => {
    const request = new Request(`http://127.0.0.1/x?${query}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { host: '127.0.0.1', authorization: `Bearer ${target.token}` },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    const response = await withErrors(handler)(request, target.context, ids);
    if (response.status >= 500) {
      const { error } = (await response.json()) as ErrorBody;
      failures.push(`${handler.name} ${JSON.stringify(ids)} ${query}: ${response.status} ${error.message}`);
    } else if (handler !== stream && handler !== getCommands) await response.text();
    return response;
  };
  const sweep = async (name: string, work: () => Promise<void>) => {
    await work().catch((error) => failures.push(`${name}: ${error}`));
  };

  const rows = async <Row>(sql: string) => (await target.database.reader.execute(sql)).rows as unknown as Row[];
  const sessions = await rows<{ id: string }>('SELECT id FROM sessions');
  const agents = await rows<{ id: string }>('SELECT id FROM agents');
  const tasks = await rows<{ session_id: string; id: string }>('SELECT session_id, id FROM tasks');
  const turns = await rows<{ session_id: string; id: string }>('SELECT session_id, id FROM turns');
  await ask(read.getSessions);
  await ask(read.getAgents);
  for (const { id: agentId } of agents) {
    for (const handler of [read.getAgent, read.getLogLevel, read.getObligations, read.getLogComponents])
      await ask(handler, { agentId });
    await ask(read.getParked, { agentId });
    for (const query of ['', 'q=e', 'regex=.', 'at=5', 'component=%EF%BF%BD', 'level=error'])
      await ask(read.getLogLines, { agentId }, query);
    await ask(read.getLogDownload, { agentId });
    await ask(putLogLevel, { agentId }, '', { level: 'debug', ttlSeconds: 1 });
  }
  for (const { id: sessionId } of sessions) {
    for (const handler of [read.getSession, read.getTranscript, read.getTasks]) await ask(handler, { sessionId });
    await ask(read.getTurnAt, { sessionId }, 'at=1795170000001');
    const turn = turns.find((one) => one.session_id === sessionId);
    if (turn !== undefined)
      await ask(read.getTranscript, { sessionId }, new URLSearchParams({ before: turn.id }).toString());
    const said = { text: 'half \ud83d', clientId: crypto.randomUUID() };
    await ask(postMessage, { sessionId }, '', said);
    await ask(postInterrupt, { sessionId }, '', {});
    await ask(postRequestAnswer, { sessionId, requestId: 'q1' }, '', { behavior: 'deny', message: 'half \ude00' });
    await ask(postWaive, { sessionId, messageId: 'm1' }, '', { reason: '\ud83d' });
  }
  for (const { session_id: sessionId, id: taskId } of tasks) {
    await ask(read.getTask, { sessionId, taskId });
    await ask(postTaskStop, { sessionId, taskId }, '', {});
  }

  for (const topic of [
    'fleet',
    ...sessions.map(({ id }) => `session:${id}`),
    ...agents.map(({ id }) => `logs:${id}`),
  ]) {
    const { status, body } = await ask(stream, {}, new URLSearchParams({ topic, after: '0' }).toString());
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
    const { status, body } = await ask(getCommands, { agentId }, 'runner=r&startedAt=1');
    if (status !== 200 || body === null) continue;
    const reader = new FrameReader(body);
    await reader.until((all) => all.some(({ event }) => event === 'up-to-date'));
    await reader.cancel();
  }
  let laterMs = 0;
  const now = () => target.context.now() + laterMs;
  const server = { database: target.database, now, steady: now };
  // one hub: messages expire only by a clock that has gone on undisturbed
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
