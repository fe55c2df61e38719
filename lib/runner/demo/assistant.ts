import { randomBytes, randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type AgUiEvent, CUSTOM } from '@interlude/protocol/ag-ui';
import { controlPath } from '../control-port/control-file';
import { isContextRatioEnabled } from '../host/context-ratio';
import { RunnerHost } from '../host/runner-host';
import type { SourceContext } from '../host/source';
import type { Redactor } from '../logger/redactor';
import { Outbox, type OutboxStatus } from '../outbox/outbox';
import type { Endpoint } from '../server-request';
import type { InstalledSdk } from '../sources/claude/claude-sdk';
import { ClaudeSource } from '../sources/claude/claude-source';
import { type ClaudeSession, readInFlight, readSessions } from '../sources/claude/conversation';
import { environmentOf, makePlace } from './assistant-place';
import { ASSISTANT, answer, GREETING, type Heard, LABEL } from './assistant-script';
import { builtInAgent } from './built-in-agent';
import { onlyItsOwn } from './only-its-own';
import { startModel, step } from './scripted-model.mjs';

/**
 * The agent of the demo that takes part: the real Claude Code where its Agent SDK is installed, else the built-in one,
 * both with the same script behind them and with the runner that every Claude Code has. It works in a project, with a
 * home and settings of its own below the data folder; nothing of the user's is read or run.
 *
 * Ordering: its greeting is the first word of its session.
 * Failure: killed, it goes on with its session at the next start, as every runner does. Ended in good order, its
 * session has ended, too, and the next demo begins another one.
 */
export interface AssistantStage {
  dataDir: string;
  /** Null if it is not installed. */
  installed: InstalledSdk | null;
  env: Record<string, string | undefined>;
  redactor: Redactor;
  endpoint: Endpoint;
  speed: number;
  onStatus: (status: OutboxStatus) => void;
  /** It can't go on; why, in one line. */
  onOver: (reason: string) => void;
}

export interface Assistant {
  sessionId: string;
  close(): Promise<void>;
}

/** How long what it asks waits for a person. */
const ANSWER_WITHIN_MS = 600_000;
const GOODBYE_MS = 3_000;
const PACE_MS = 45;
const TOKENS_PER_SECOND = 80;
const FIRST_TOKEN_MS = 400;

/** @throws ProcessLockedError when another demo runs it */
export async function startAssistant(stage: AssistantStage): Promise<Assistant> {
  const { dataDir, installed, env, redactor, endpoint, speed, onStatus, onOver } = stage;
  const host = await RunnerHost.open({
    about: { kind: installed === null ? 'scripted' : 'claude', source: 'demo', model: 'scripted' },
    journal: installed === null ? 'scripted' : 'claude',
    meanwhile: 'the agent goes on',
    ...{ endpoint, dataDir, redactor, onStatus },
    level: env.INTERLUDE_LOG_LEVEL,
    tellsContextRatio: isContextRatioEnabled(env),
    controlFile: (agentId) => controlPath(dataDir, agentId),
    openOutbox: (listeners) =>
      Outbox.open(join(dataDir, 'outboxes', `demo-${ASSISTANT}.db`), { agentId: ASSISTANT, ...listeners }),
  });
  const { outbox } = host;
  const place = makePlace(dataDir, speed);
  const say = (heard: Heard) => step(answer(heard), { wait: FIRST_TOKEN_MS / speed, pace: TOKENS_PER_SECOND * speed });
  const model = installed === null ? null : await startModel({ otherwise: say }, { cwd: place.project });
  const killed = (await readSessions(outbox)).find(({ running }) => running);
  const memory = killed === undefined ? newSession(place.project) : { ...killed, cwd: place.project };
  const builtIn = { sdk: builtInAgent({ paceMs: PACE_MS / speed, outputDir: place.output }), isInProcess: true };
  const inHand = await readInFlight(outbox, memory.sessionId);
  let around = null as SourceContext | null;
  await host.start((surroundings) => {
    around = surroundings;
    const begun = surroundings.openWork(memory.sessionId).turn?.userMessageIds ?? [];
    return new ClaudeSource({
      ...(installed ?? builtIn),
      sdk: onlyItsOwn((installed ?? builtIn).sdk),
      context: surroundings,
      memory,
      // What a killed turn had begun with, Claude Code finds in its own records; the built-in agent has none, and would
      // begin it a second time.
      inHand: installed === null ? inHand.filter(({ messageId }) => !begun.includes(messageId)) : inHand,
      env: environmentOf(env, place, model?.url),
      controlFile: controlPath(dataDir, ASSISTANT),
      permissionMode: 'default',
      answerWithinMs: ANSWER_WITHIN_MS,
      endRefusal: 'it is part of the demo, and ends with it',
    });
  });
  host.over.addEventListener('abort', () => onOver(host.over.reason));
  if (killed === undefined && around !== null) greet(around, memory.sessionId);
  return {
    sessionId: memory.sessionId,
    async close() {
      await host.close(0, GOODBYE_MS);
      await model?.close();
    },
  };
}

function newSession(cwd: string): ClaudeSession {
  // Lists show the first eight characters, until somebody has written.
  const sessionId = `ask-away-${randomBytes(4).toString('hex')}`;
  return { sessionId, conversationId: randomUUID(), cwd, pid: null, running: false };
}

function greet({ emit }: SourceContext, sessionId: string): void {
  const messageId = `${sessionId}/greeting`;
  const events: AgUiEvent[] = [
    { type: 'CUSTOM', name: CUSTOM.notice, value: { text: LABEL, tone: 'info' } },
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: GREETING },
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
  void emit(
    sessionId,
    events.map((event) => ({ occurredAt: Date.now(), event })),
  );
}
