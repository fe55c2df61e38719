import type { RequestOption } from '@interlude/protocol/ag-ui';
import { requestDigest } from '@interlude/protocol/request-digest';
import { AgentApiSource, type AgentApiSourceOptions } from '@interlude/runner/sources/agentapi/agentapi-source';
import { expect, onTestFinished } from 'vitest';
import { AgentApiEmulator } from './agentapi-server';
import { toldInLines } from './recorded';
import { MemorySurroundings } from './source-surroundings';

const SESSION = 's';
export const QUICK = { longestMs: 20, pollMs: 60_000, brokenPollMs: 20, stillMs: 60 };

/** A source in front of an emulated AgentAPI, and what people do with it. */
export async function attached(
  options: Partial<AgentApiSourceOptions> = {},
  emulator?: AgentApiEmulator,
  around = new MemorySurroundings(),
) {
  const server = emulator ?? (await AgentApiEmulator.start());
  const source = new AgentApiSource({
    ...{ context: around, url: server.url, sessionId: SESSION, headers: {}, random: () => 0, waits: QUICK },
    ...options,
  });
  await source.start();
  onTestFinished(() => source.close(0, 'the test is over'));
  let messages = 0;
  const opened = () => around.events.findLast(({ name }) => name === 'request:opened')?.value as Opened | undefined;
  return {
    server,
    around,
    source,
    facts: () => source.sessions[0],
    turn: () => around.openWork(SESSION).turn,
    requests: () => around.openWork(SESSION).requests,
    lines: () => toldInLines(around.told).trimEnd().split('\n'),
    turns: () => turnsOf(around),
    opened,
    say: (text: string) => source.deliver(messageTo(`m${++messages}`, text)),
    interrupt: (turnId?: string) =>
      source.interrupt({ ...about('interrupt'), body: turnId === undefined ? {} : { turnId } }),
    choose(optionId: string) {
      const { request_id: requestId = '', input, options: offered = [] } = opened() ?? {};
      const position = '7';
      const digest = requestDigest({ sessionId: SESSION, requestId, tool: null, input, options: offered, position });
      const behavior = offered.find(({ id }) => id === optionId)?.kind ?? 'allow';
      const body = { requestId, openedPosition: position, digest, behavior, optionId };
      return source.answer({ ...about('permission.decision'), body });
    },
  };
}

interface Opened {
  request_id?: string;
  title?: string;
  input?: unknown;
  options?: RequestOption[];
}

export const settled = (look: () => unknown) => expect.poll(look, { interval: 5 });

export function messageTo(messageId: string, text: string) {
  return {
    ...about('message'),
    id: messageId,
    body: { messageId, text, from: { kind: 'person', id: 'operator' } },
  } as const;
}

function about<Type extends string>(type: Type) {
  return { id: 'c', type, sessionId: SESSION, createdAt: 1, expiresAt: 2 };
}

/** The text of each turn, as a reader sees it; what stands outside of any is of the kind `none`. */
function turnsOf(around: MemorySurroundings) {
  const turns: { kind: string; asked: string[]; said: string; end: string | null }[] = [];
  const outside = { kind: 'none', asked: [], said: '', end: null };
  let open: (typeof turns)[number] | null = null;
  for (const { type, metadata, delta, outcome } of around.events) {
    const { turn = '', userMessageIds = [], whole } = metadata?.interlude ?? {};
    if (type === 'RUN_STARTED') {
      open = { kind: turn, asked: userMessageIds, said: '', end: null };
      turns.push(open);
    } else if (type === 'RUN_ERROR' || type === 'RUN_FINISHED') {
      if (open !== null) open.end = type === 'RUN_ERROR' ? 'failed' : (outcome as { type: string }).type;
      open = null;
    } else if (type === 'TEXT_MESSAGE_CONTENT') {
      const home = open ?? outside;
      home.said = whole === true ? String(delta) : home.said + delta;
    }
  }
  return outside.said === '' ? turns : [...turns, outside];
}
