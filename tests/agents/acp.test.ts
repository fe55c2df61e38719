import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { fieldsOf } from '@interlude/protocol/fields';
import { requestDigest } from '@interlude/protocol/request-digest';
import { InFlightMessages } from '@interlude/runner/host/message-delivery';
import { AcpSource } from '@interlude/runner/sources/acp/acp-source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { type ModelContext, type ModelStep, startAcpModel } from '../support/acp-model';
import { homeOf, missingAgent, REAL_ACP_AGENTS } from '../support/acp-real-agents';
import { MemorySourceContext } from '../support/source-contract';

/** Runs the source against real ACP agents with a scripted model. */
const agents = process.env.INTERLUDE_TEST_AGENTS_DIR;
const ID = 's';
const LONG = 'A long answer that goes on, word by word, for as long as nobody breaks in on it, and then some more.';

type Name = keyof typeof REAL_ACP_AGENTS;

async function stage(name: Name) {
  const agent = REAL_ACP_AGENTS[name];
  const script = ({ said, results }: ModelContext): ModelStep => {
    const [word] = [...said.matchAll(/START|ASK|LONG|FAIL|NEXT-\d/g)].at(-1) ?? [];
    if (results.length > 0) return { text: 'The tool has run.' };
    if (word === 'START') return { text: 'I start.', call: agent.shell('sleep 2; exit 3', true) };
    if (word === 'ASK') return { text: 'I need a file.', call: agent.shell('touch marker', false) };
    if (word === 'LONG') return { text: LONG, paceMs: 150 };
    if (word === 'FAIL') return { error: 'scripted: no such thing' };
    return { text: word === undefined ? 'The poll came back.' : `Reply to ${word}.` };
  };
  const { cwd, command, env } = await homeOf(agents ?? '', agent, await startAcpModel(script));
  const around = new MemorySourceContext();
  const source = new AcpSource({
    context: around,
    memory: { sessionId: ID, nativeId: null, note: null, cwd, pid: null, running: false },
    inFlight: await InFlightMessages.restore(around, ID),
    ...{ command, env, answerWithinMs: 60_000 },
  });
  await source.start();
  onTestFinished(() => source.close(0, 'the test is over'));
  const common = { sessionId: ID, createdAt: 1, expiresAt: 2 } as const;
  const values = (event: string) => around.events.filter((one) => one.name === event).map((one) => fieldsOf(one.value));
  const turns = () => {
    const all: { asked: string[]; said: string; end: string | null; kind: string | undefined }[] = [];
    for (const { type, metadata, delta, outcome, subagentRunId } of around.events) {
      const { turn: kind, userMessageIds = [] } = metadata?.interlude ?? {};
      const last = all.at(-1);
      if (type === 'RUN_STARTED') all.push({ asked: userMessageIds, said: '', end: null, kind });
      else if (last === undefined || subagentRunId !== undefined) continue;
      else if (type === 'TEXT_MESSAGE_CONTENT') last.said += delta;
      else if (type === 'RUN_ERROR') [last.end, last.asked] = ['failed', userMessageIds];
      else if (type === 'RUN_FINISHED') [last.end, last.asked] = [String(fieldsOf(outcome).type), userMessageIds];
    }
    return all;
  };
  let messages = 0;
  const decide = async (behavior: 'allow' | 'deny') => {
    const open = () => values(CUSTOM.requestOpened).at(-1);
    await until(() => around.openWork(ID).requests).toHaveLength(1);
    const { request_id, tool_name = null, input, options } = fieldsOf(open()) as never;
    const digest = requestDigest({
      ...{ sessionId: ID, requestId: request_id, tool: tool_name, input, options },
      position: '7',
    });
    const body = { requestId: request_id, digest, openedPosition: '7', behavior };
    expect(await source.answer({ ...common, id: 'd', type: 'permission.decision', body })).toEqual({ state: 'done' });
  };
  return {
    cwd,
    source,
    values,
    turns,
    events: () => around.events,
    isIdle: () => around.openWork(ID).turn === null && around.openWork(ID).tasks.length === 0,
    allow: () => decide('allow'),
    deny: () => decide('deny'),
    agentPid: () => source.sessions[0]?.process?.pid ?? 0,
    of: (id: string) => turns().find(({ asked }) => asked.includes(id)),
    async say(text: string) {
      const messageId = `m${++messages}`;
      const body = { messageId, text, from: { kind: 'person' as const, id: 'operator' } };
      expect(await source.deliver({ ...common, id: messageId, type: 'message', body }, false)).toEqual({
        state: 'delivered',
      });
      return messageId;
    },
    interrupt: () => source.interrupt({ ...common, id: 'i', type: 'interrupt', body: {} }),
    stop: (taskId: string) => source.stop?.({ ...common, id: 't', type: 'task.stop', body: { taskId } }, false),
  };
}

const until = (look: () => unknown) => expect.poll(look, { interval: 50 });

describe.each(Object.keys(REAL_ACP_AGENTS) as Name[])('%s over ACP', (name) => {
  const missing = missingAgent(agents, REAL_ACP_AGENTS[name]);
  const real = test.skipIf(missing !== null);
  if (missing !== null) test.skip(`is not here: ${missing}`, () => {});

  real('assigns each reply to its turn through requests, interrupts, failures and kills', async () => {
    const { cwd, say, allow, of, interrupt, agentPid, values } = await stage(name);
    const asking = await say('ASK');
    await allow();
    await until(() => of(asking)?.end).toBe('success');
    expect(of(asking)?.said).toContain('The tool has run.');
    expect(existsSync(join(cwd, 'marker'))).toBe(true);

    const long = await say('LONG');
    await until(() => of(long)?.said).toContain('A long');
    const behind = say('NEXT-1');
    expect(await interrupt()).toMatchObject({ state: 'done' });
    const next = await behind;
    await until(() => of(next)?.end).toBe('success');
    expect(of(long)?.end).toBe('cancelled');
    expect(of(next)?.said).toBe('Reply to NEXT-1.');

    const failing = await say('FAIL');
    await until(() => of(failing)?.end).toBe('failed');

    const killed = await say('LONG');
    await until(() => of(killed)?.said).toContain('A long');
    process.kill(agentPid(), 'SIGKILL');
    const after = await say('NEXT-2');
    await until(() => of(after)?.end).toBe('success');
    // Qwen reports the cancelled turn before it exits.
    expect(['failed', 'cancelled']).toContain(of(killed)?.end);
    expect(of(after)?.said).toBe('Reply to NEXT-2.');
    expect(values(CUSTOM.notice).some(({ text }) => /started again in 0\.5 s/.test(String(text)))).toBe(true);
  });
});

describe.each(['claude', 'qwen'] as const)('%s over ACP, woken by a task', (name) => {
  const real = test.skipIf(missingAgent(agents, REAL_ACP_AGENTS[name]) !== null);

  real('reports in a between-run turn and assigns the next reply to its own turn', async () => {
    const { say, allow, of, turns, values } = await stage(name);
    const start = await say('START');
    await allow();
    await until(() => of(start)?.end).toBe('success');
    await until(() =>
      turns()
        .map(({ kind, said, end }) => [kind, said, end])
        .at(-1),
    ).toEqual([...['between-run', 'The poll came back.', 'success']]);
    const [ended] = values(CUSTOM.taskCompleted);
    expect(ended).toMatchObject({ status: 'failed' });
    const next = await say('NEXT-1');
    await until(() => of(next)?.end).toBe('success');
    expect(of(next)?.said).toBe('Reply to NEXT-1.');
    expect(turns().map(({ asked }) => asked)).toEqual([[start], [], [next]]);
  });
});

describe('claude over ACP, told to stop a command', () => {
  const real = test.skipIf(missingAgent(agents, REAL_ACP_AGENTS.claude) !== null);

  real('stops only that command and reports it outside of turns', async () => {
    const { say, allow, of, turns, values, stop, isIdle } = await stage('claude');
    const start = await say('START');
    await allow();
    await until(() => of(start)?.end).toBe('success');
    const [task] = values(CUSTOM.taskStarted);
    expect(await stop(String(task?.task_id))).toEqual({ state: 'done' });
    await until(() => values(CUSTOM.taskCompleted)[0]?.status).toBe('stopped');
    expect(await stop(String(task?.task_id))).toMatchObject({ state: 'failed' });
    await until(() => values(CUSTOM.notice).map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/^Task stopped by user: /),
    );
    expect(isIdle()).toBe(true);
    const next = await say('NEXT-1');
    await until(() => of(next)?.end).toBe('success');
    expect(of(next)?.said).toBe('Reply to NEXT-1.');
    expect(turns().map(({ asked }) => asked)).toEqual([[start], [next]]);
  });
});

describe('claude over ACP, after its inner agent dies', () => {
  const real = test.skipIf(missingAgent(agents, REAL_ACP_AGENTS.claude) !== null);

  real('marks its tasks lost, reloads the session and answers the next message', async () => {
    const { say, allow, of, agentPid, values, isIdle } = await stage('claude');
    const start = await say('START');
    await allow();
    await until(() => of(start)?.end).toBe('success');
    const adapter = agentPid();
    for (const pid of childrenOf(adapter)) process.kill(pid, 'SIGKILL');
    await until(() => values(CUSTOM.taskCompleted)[0]?.status).toBe('failed');
    expect(isIdle()).toBe(true);
    const next = await say('NEXT-1');
    await until(() => of(next)?.end).toBe('success');
    expect(of(next)?.said).toBe('Reply to NEXT-1.');
    expect(agentPid()).toBe(adapter);
    expect(values(CUSTOM.notice).at(-1)?.text).toMatch(/had lost its session, and has loaded it again/);
  });
});

describe('a command in the background', () => {
  test.skipIf(missingAgent(agents, REAL_ACP_AGENTS.codex) !== null)('of codex ends with its exit code', async () => {
    const { say, of, values } = await stage('codex');
    const start = await say('START');
    await until(() => of(start)?.end).toBe('success');
    expect(values(CUSTOM.taskStarted)).toMatchObject([{ description: 'sleep 2; exit 3' }]);
    await until(() => values(CUSTOM.taskCompleted)).toMatchObject([{ status: 'failed', exit_code: 3 }]);
  });

  test.skipIf(missingAgent(agents, REAL_ACP_AGENTS.codex) !== null)('of codex can be stopped', async () => {
    const { say, of, values, stop } = await stage('codex');
    const start = await say('START');
    await until(() => of(start)?.end).toBe('success');
    const [task] = values(CUSTOM.taskStarted);
    expect(await stop(String(task?.task_id))).toEqual({ state: 'done' });
    await until(() => values(CUSTOM.taskCompleted)[0]?.status).toBe('stopped');
  });

  test.skipIf(missingAgent(agents, REAL_ACP_AGENTS.gemini) !== null)('of gemini ends with its process', async () => {
    const { say, of, allow, values } = await stage('gemini');
    const start = await say('START');
    await allow();
    await until(() => of(start)?.end).toBe('success');
    expect(values(CUSTOM.taskCompleted)).toEqual([]);
    await until(() => values(CUSTOM.taskCompleted)).toMatchObject([{ status: 'completed' }]);
  });
});

test.skipIf(missingAgent(agents, REAL_ACP_AGENTS.gemini) !== null)(
  'a gemini call fails when a person denies it',
  async () => {
    const { say, of, deny, events } = await stage('gemini');
    const asking = await say('ASK');
    await deny();
    await until(() => of(asking)?.end).toBeTruthy();
    expect(events().filter(({ type }) => type === 'TOOL_CALL_RESULT')).toMatchObject([
      { content: 'Denied.', isError: true },
    ]);
  },
);

test.skipIf(missingAgent(agents, REAL_ACP_AGENTS.qwen) !== null)(
  'a qwen turn counts as interrupted when interrupted after its last word',
  async () => {
    const { say, of, interrupt } = await stage('qwen');
    const said = await say('NEXT-1');
    await until(() => of(said)?.said).toBe('Reply to NEXT-1.');
    expect(of(said)?.end).toBeNull();
    await interrupt();
    await until(() => of(said)?.end).toBe('cancelled');
  },
);

function childrenOf(pid: number): number[] {
  const listed = execFileSync('ps', ['-o', 'pid=', '--ppid', `${pid}`], { encoding: 'utf8' });
  return listed.trim().split(/\s+/).map(Number);
}
