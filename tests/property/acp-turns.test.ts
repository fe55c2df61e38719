import { QUIET_MS, SETTLE_MS } from '@interlude/runner/adapters/acp/prompt-turns';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { acpFrames } from '../support/acp-frames';

const CLAUDE = '@agentclientprotocol/claude-agent-acp';
const AGENTS: readonly (readonly [name: string, introduction: { protocolVersion?: number }])[] = [
  [CLAUDE, { _meta: { jetbrains: { air: { capabilities: ['asyncTasks'] } } } } as object],
  ...[CLAUDE, 'qwen-code', 'codex-acp', 'gemini-cli', 'Copilot', 'some-agent'].map((name) => [name, {}] as const),
  ['some-agent', { protocolVersion: 2 }],
];
const LOST = { code: -32_002, message: 'Resource not found', data: { sessionId: 'n' } };
const IDS = [undefined, 'a', 'b', '0b0a4b1e-0000-4000-8000-000000000001', '0b0a4b1e-0000-4000-8000-000000000002'];

/** Simulates an agent that emits any event at any time. */
function life([name, introduction]: (typeof AGENTS)[number]) {
  const frames = acpFrames(name, introduction);
  const { update, pass, call } = frames;
  const prompts: string[] = [];
  const unanswered: string[] = [];
  /** Prompts cancelled unread or refused; no turn has to answer them. */
  const excused = new Set<string>();
  const calls = new Set<string>();
  const own = new Set<string>();
  let isQwenAtIt = false;
  const state = (given: string) => update({ sessionUpdate: 'state_update', state: given, stopReason: 'end_turn' });
  const task = (sessionUpdate: string, asyncTaskId: string) =>
    update({ sessionUpdate, asyncTaskId, state: 'completed' });
  const answer = (prompt = unanswered[0]) => {
    if (prompt === undefined) return;
    unanswered.splice(unanswered.indexOf(prompt), 1);
    if (introduction.protocolVersion === 2) pass('in', { id: 10 + prompts.indexOf(prompt), result: {} });
    else frames.answer(prompt);
  };
  const steps = {
    say: (at: number) => frames.say('text ', IDS[at % IDS.length]),
    think: () => update({ sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: 'Hm.' } }),
    call(at: number) {
      calls.add(`c${at}`);
      call(`c${at}`, { title: 'poll', kind: 'execute', status: 'in_progress' });
    },
    result: () => {
      for (const id of calls) call(id, { status: 'completed' });
      calls.clear();
    },
    prompt() {
      if (unanswered.length > 1) return;
      const prompt = `m${prompts.length}`;
      prompts.push(prompt);
      unanswered.push(prompt);
      frames.prompt(prompt);
    },
    answer: () => answer(),
    cancel() {
      for (const prompt of unanswered) excused.add(prompt);
      pass('out', { method: 'session/cancel', params: { sessionId: 'n' } });
    },
    lose() {
      const prompt = introduction.protocolVersion === 2 ? undefined : unanswered.shift();
      if (prompt === undefined) return;
      excused.add(prompt);
      frames.fail(prompt, LOST);
    },
    running: () => state('running'),
    idle: () => state('idle'),
    begin(at: number) {
      own.add(`autonomous-turn-${at}`);
      task('async_task_spawned', `autonomous-turn-${at}`);
    },
    end() {
      for (const id of own) task('async_task_state_update', id);
      own.clear();
    },
    qwen(at: number) {
      if (isQwenAtIt) pass('in', { method: '_qwencode/end_turn', params: { sessionId: 'n' } });
      else pass('in', { id: 500 + at, method: '_qwencode/start_turn', params: { sessionId: 'n' } });
      isQwenAtIt = !isQwenAtIt;
    },
    settle: () => frames.waits(SETTLE_MS),
    silence: () => frames.waits(QUIET_MS),
  };
  return {
    ...{ frames, steps, prompts, excused },
    /** Ends everything the agent has started. */
    over() {
      steps.result();
      for (const prompt of [...unanswered]) answer(prompt);
      steps.idle();
      steps.end();
      if (isQwenAtIt) steps.qwen(0);
      for (const _ of [1, 2, 3]) steps.silence();
    },
  };
}

const STEPS = Object.keys(life(['some-agent', {}]).steps) as (keyof ReturnType<typeof life>['steps'])[];

test('the ACP adapter closes every turn and answers each prompt with a turn', () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...AGENTS),
      fc.array(fc.constantFrom(...STEPS), { maxLength: 25, size: 'max' }),
      (agent, done) => {
        const { frames, steps, prompts, excused, over } = life(agent);
        for (const [index, step] of done.entries()) steps[step](index);
        over();
        const events = frames.told.map(({ event }) => event);
        const ends = events.filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR');
        expect(ends).toHaveLength(events.filter(({ type }) => type === 'RUN_STARTED').length);
        expect(frames.adapter.dueAt).toBeNull();
        const answered = new Set(ends.flatMap(({ metadata }) => metadata?.interlude?.userMessageIds ?? []));
        expect(prompts.filter((prompt) => !answered.has(prompt) && !excused.has(prompt))).toEqual([]);
        frames.ends();
      },
    ),
    { numRuns: 1_000 },
  );
});
