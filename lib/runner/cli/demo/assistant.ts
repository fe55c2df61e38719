import { randomBytes, randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { isContextRatioEnabled } from '../../host/context-ratio';
import { controlPath } from '../../host/control-file';
import { RunnerHost } from '../../host/runner-host';
import type { Endpoint } from '../../host/server-request';
import type { SourceContext } from '../../host/source';
import type { Redactor } from '../../logger/redactor';
import { Outbox, type OutboxStatus } from '../../outbox/outbox';
import type { InstalledSdk } from '../../sources/claude/claude-sdk';
import { ClaudeSource } from '../../sources/claude/claude-source';
import { type ClaudeSession, readInFlight, readSessions } from '../../sources/claude/conversation';
import {
  ASSISTANT,
  answer,
  FIRST_MESSAGE,
  GREETING,
  LABEL,
  refuseChangedInput,
  type ScriptInput,
  TESTS_FILE,
  testsProgram,
} from './assistant-script';
import { builtInAgent } from './built-in-agent';
import { startModel, step } from './scripted-model.mjs';

export interface AssistantStage {
  dataDir: string;
  /** Null if it is not installed. */
  installed: InstalledSdk | null;
  env: Record<string, string | undefined>;
  redactor: Redactor;
  endpoint: Endpoint;
  speed: number;
  onStatus: (status: OutboxStatus) => void;
  /** Called with the reason, in one line, when it can't continue. */
  onOver: (reason: string) => void;
}

export interface Assistant {
  sessionId: string;
  close(): Promise<void>;
}

const ANSWER_WITHIN_MS = 600_000;
const FLUSH_MS = 3_000;
const PACE_MS = 45;
const TOKENS_PER_SECOND = 80;
const FIRST_TOKEN_MS = 400;

/**
 * Starts the demo's answering agent: Claude Code if its Agent SDK is installed, else the built-in agent, both with the
 * same script and with the ordinary runner for Claude Code. Its project, home and settings are below the data
 * directory; the user's own files are neither read nor run.
 *
 * Ordering: the greeting is the first turn of the session.
 * Failure: the next demo resumes the session, after a kill and after a normal end.
 *
 * @throws ProcessLockedError when another demo runs it
 */
export async function startAssistant(stage: AssistantStage): Promise<Assistant> {
  const { dataDir, installed, env, redactor, endpoint, speed, onStatus, onOver } = stage;
  const host = await RunnerHost.open({
    about: { kind: installed === null ? 'scripted' : 'claude', source: 'demo', model: 'scripted' },
    journal: installed === null ? 'scripted' : 'claude',
    meanwhile: 'the agent continues',
    ...{ endpoint, dataDir, redactor, onStatus },
    level: env.INTERLUDE_LOG_LEVEL,
    logsContextRatio: isContextRatioEnabled(env),
    controlFile: (agentId) => controlPath(dataDir, agentId),
    openOutbox: (listeners) =>
      Outbox.open(join(dataDir, 'outboxes', `demo-${ASSISTANT}.db`), { agentId: ASSISTANT, ...listeners }),
  });
  const { outbox } = host;
  const place = createWorkspace(dataDir, speed);
  const respond = (input: ScriptInput) =>
    step(answer(input), { wait: FIRST_TOKEN_MS / speed, pace: TOKENS_PER_SECOND * speed });
  const model = installed === null ? null : await startModel({ otherwise: respond }, { cwd: place.project });
  const known = await readSessions(outbox);
  // Earlier versions gave each run of the demo a session of its own.
  const earlier = known.find(({ running }) => running) ?? known.find(({ sessionId }) => startsWithGreeting(sessionId));
  const memory = { ...(earlier ?? newSession()), cwd: place.project };
  const builtIn = { sdk: builtInAgent({ paceMs: PACE_MS / speed, outputDir: place.output }), isInProcess: true };
  const inFlight = await readInFlight(outbox, memory.sessionId);
  let context = null as SourceContext | null;
  await host.start((surroundings) => {
    context = surroundings;
    const started = surroundings.openWork(memory.sessionId).turn?.userMessageIds ?? [];
    return new ClaudeSource({
      ...(installed ?? builtIn),
      sdk: refuseChangedInput((installed ?? builtIn).sdk),
      context: surroundings,
      memory,
      // The built-in agent would answer the messages of a killed turn twice; Claude Code finds them in its own records.
      inFlight: installed === null ? inFlight.filter(({ messageId }) => !started.includes(messageId)) : inFlight,
      env: environmentOf(env, place, model?.url),
      controlFile: controlPath(dataDir, ASSISTANT),
      permissionMode: 'default',
      answerWithinMs: ANSWER_WITHIN_MS,
      endRefusal: 'it is part of the demo and ends with it',
    });
  });
  host.stopSignal.addEventListener('abort', () => onOver(host.stopSignal.reason));
  if (earlier === undefined && context !== null) greet(context, memory.sessionId);
  return {
    sessionId: memory.sessionId,
    async close() {
      await host.close(0, FLUSH_MS);
      await model?.close();
    },
  };
}

const PREFIX = `${ASSISTANT}-`;

/** False for a session of an earlier version, whose greeting was not a turn. */
export function startsWithGreeting(sessionId: string): boolean {
  return sessionId.startsWith(PREFIX);
}

function newSession(): Omit<ClaudeSession, 'cwd'> {
  const sessionId = PREFIX + randomBytes(4).toString('hex');
  return { sessionId, conversationId: randomUUID(), pid: null, running: false };
}

/** Answers a first message, which becomes the title of the session. */
function greet({ emit }: SourceContext, sessionId: string): void {
  const [run, asked] = [{ threadId: sessionId, runId: randomUUID() }, randomUUID()];
  const text = (messageId: string, role: string, delta: string): AgUiEvent[] => [
    { type: 'TEXT_MESSAGE_START', messageId, role },
    { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
    { type: 'TEXT_MESSAGE_END', messageId },
  ];
  const events: AgUiEvent[] = [
    ...text(asked, 'user', FIRST_MESSAGE),
    { type: 'RUN_STARTED', ...run, metadata: { interlude: { turn: 'user', userMessageIds: [asked] } } },
    { type: 'CUSTOM', name: CUSTOM.notice, value: { text: LABEL, tone: 'info' } },
    ...text(randomUUID(), 'assistant', GREETING),
    { type: 'RUN_FINISHED', ...run },
  ];
  void emit(
    sessionId,
    events.map((event) => ({ occurredAt: Date.now(), event })),
  );
}

interface Workspace {
  project: string;
  /** Folder for the output of its commands. */
  output: string;
  home: string;
  config: string;
  temp: string;
}

type Environment = Record<string, string | undefined>;

/** Needed to run programs at all. */
const INHERITED = ['PATH', 'Path', 'SHELL', 'LANG', 'SystemRoot', 'SystemDrive', 'ComSpec', 'PATHEXT'];

const REST_MS = 1_200;

function createWorkspace(dataDir: string, speed: number): Workspace {
  const base = join(dataDir, 'demo');
  const folder = (name: string) => {
    mkdirSync(join(base, name), { recursive: true, mode: 0o700 });
    return join(base, name);
  };
  const place = {
    project: folder('project'),
    output: folder('output'),
    home: folder('home'),
    config: folder('config'),
    temp: folder('tmp'),
  };
  writeFileSync(join(place.project, TESTS_FILE), testsProgram(REST_MS / speed));
  return place;
}

/** The environment without the user's keys, proxies, settings and accounts. */
function environmentOf(env: Environment, workspace: Workspace, modelUrl: string | undefined): Environment {
  const { home, config, temp } = workspace;
  const inherited = Object.fromEntries(
    INHERITED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );
  const path = env.PATH ?? env.Path ?? '';
  return {
    ...inherited,
    // Added in case `node` is not on the PATH.
    PATH: [path, dirname(process.execPath)].filter(Boolean).join(delimiter),
    HOME: home,
    USERPROFILE: home,
    CLAUDE_CONFIG_DIR: config,
    TMPDIR: temp,
    TEMP: temp,
    TERM: 'dumb',
    ...(modelUrl === undefined
      ? {}
      : { ANTHROPIC_BASE_URL: modelUrl, ANTHROPIC_API_KEY: 'sk-ant-no-key-scripted-model' }),
    // Claude Code reads instructions from every folder above the project, perhaps the user's home, and files that a
    // message names with @.
    CLAUDE_CODE_DISABLE_CLAUDE_MDS: '1',
    CLAUDE_CODE_DISABLE_FILE_MENTIONS: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_TELEMETRY: '1',
    DISABLE_AUTOUPDATER: '1',
    DISABLE_ERROR_REPORTING: '1',
  };
}
