import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Turn } from '@interlude/protocol/read-models';
import { agent, background, bash, say, tool, turn } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { claudeStage, quickStep, releaseTask, reportExits, startPoll, WAIT_FOR_RELEASE } from '../support/claude-stage';
import { type LiveServer, startLiveServer } from '../support/live-server';
import {
  answering,
  assistantText,
  expectAnswered,
  messages,
  notices,
  requests,
  taskEnds,
  turnStates,
} from '../support/operator';

/** The real Claude Code, runner and dashboard. Only the model is scripted. */

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

const count = (text: string, part: string) => text.split(part).length - 1;

/** Ends the polls after their turn; a poll that ends earlier is reported in that turn. */
async function endPolls({ operator, cwd }: Awaited<ReturnType<typeof claudeStage>>): Promise<void> {
  await operator.finished(1);
  await releaseTask(cwd);
}

describe('a live Claude Code', () => {
  test('reports in a between-run turn when its background task ends', async () => {
    const stage = await claudeStage(server, {
      turns: [startPoll(say('Starting.')), turn(/"Poll" failed/, reportExits)],
    });
    const { operator } = stage;
    await stage.runner();
    await expect.poll(() => operator.session()).toMatchObject({ state: 'idle', turnCount: 0, agentId: stage.agentId });
    const id = await operator.send('START');
    await endPolls(stage);
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user finished', 'between-run finished']);
    expectAnswered(turns, id, 'Started the poll.');
    const [task] = await operator.tasks();
    expect(task).toMatchObject({ description: 'Poll', status: 'failed', exitCode: 3, answeredInTurnId: turns[1]?.id });
    expect(turns[1]?.trigger).toMatchObject({ kind: 'task', taskIds: [task?.id] });
    expect(assistantText(turns[1])).toBe('Poll exited with code 3');
    expect(taskEnds(turns).map((one) => one.id)).toEqual([task?.id]);
    expect(await stage.end()).toMatchObject({ exitCode: 0 });
    expect(await operator.session()).toMatchObject({ state: 'exited', stateReason: 'the runner was stopped' });
    expect(stage.problems()).toEqual([]);
  });

  test('exits with its runner within 5 s when ended from the dashboard in a turn', async () => {
    const talk = 'A long answer that goes on for as long as nobody breaks in on it, and then some more of it';
    const stage = await claudeStage(server, { turns: [turn(/START/, quickStep([say(talk)], { pace: 1 }))] });
    const { operator } = stage;
    const { ended } = await stage.runner();
    await expect.poll(() => operator.session()).toMatchObject({ state: 'idle', turnCount: 0 });
    await operator.send('START');
    await operator.until('its first words', (turns) => assistantText(turns[0]) !== '');
    const response = await fetch(`${server.url}/api/v1/sessions/${stage.sessionId}/end`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}` },
    });
    expect(response.status).toBe(202);
    const { exitCode, stderr } = await ended;
    expect([exitCode, stderr]).toEqual([0, 'interlude: ended from the dashboard\n']);
    expect(await operator.session()).toMatchObject({ state: 'exited', stateReason: 'ended from the dashboard' });
    expect(turnStates(await operator.turns()).slice(0, 1)).toEqual(['user interrupted']);
  });

  test('shows a background command’s output on its card while it runs and in full afterwards', async () => {
    const command =
      'echo first; echo "token=gh""p_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2"; read -r _ < ./go; echo last; exit 3';
    const stage = await claudeStage(server, {
      turns: [
        turn(/START/, quickStep([background(command, 'Write')]), quickStep([say('Started it.')])),
        turn(/"Write" failed/, reportExits),
      ],
    });
    const { operator } = stage;
    const go = join(stage.cwd, 'go');
    execFileSync('mkfifo', [go]);
    await stage.runner();
    await operator.send('START');
    await operator.finished(1);
    const [task] = await operator.tasks();
    const written = async () => await operator.output(task?.id ?? '');
    await expect.poll(written).toContain('first');
    await expect.poll(written).toMatch(/token=\[redacted: [a-z-]+\]/);
    expect((await operator.tasks())[0]).toMatchObject({ status: 'running', hasOutput: true });
    await writeFile(go, 'go\n');
    await operator.finished(2);
    await expect.poll(written).toMatch(/first\n.*last\n/s);
    expect(await written()).not.toContain('a1B2');
    expect(await stage.end()).toMatchObject({ exitCode: 0 });
    expect(stage.problems()).toEqual([]);
  });

  test('reports each of three simultaneous task ends once, in the turn that mentions it', async () => {
    const polls = [1, 2, 3].map((at) => background(`${WAIT_FOR_RELEASE}exit ${at}`, `Poll ${at}`));
    const stage = await claudeStage(server, {
      turns: [
        turn(/START/, quickStep([say('Starting.'), ...polls]), quickStep([say('Started three polls.')])),
        ...[1, 2, 3].map(() => turn(/"Poll \d" failed/, reportExits)),
      ],
    });
    const { operator } = stage;
    await stage.runner();
    await operator.send('START');
    await endPolls(stage);
    const told = (turns: readonly Turn[]) => turns.slice(1).map(assistantText).join('\n');
    const turns = await operator.until('three reports', (all) => {
      const real = all.filter(({ kind }) => kind !== 'none');
      return [1, 2, 3].every((at) => told(real).includes(`Poll ${at} exited with code ${at}`)) && real;
    });
    await operator.finished(turns.length);
    for (const at of [1, 2, 3]) expect(count(told(turns), `Poll ${at} exited`)).toBe(1);
    const tasks = await operator.tasks();
    expect(tasks.map(({ status, exitCode }) => [status, exitCode])).toEqual([1, 2, 3].map((at) => ['failed', at]));
    for (const task of tasks) {
      const home = turns.find(({ id }) => id === task.answeredInTurnId);
      expect(assistantText(home)).toContain(`${task.description} exited`);
      expect(taskEnds(home ? [home] : []).map(({ id }) => id)).toContain(task.id);
    }
  });

  test('answers a message sent during a task report in the next turn', async () => {
    const stage = await claudeStage(server, {
      turns: [
        startPoll(),
        turn(
          /"Poll" failed/,
          quickStep([say('Poll exited with code 3, and here is what I make of it.')], { wait: 300, pace: 12 }),
        ),
        turn(/SECOND/, quickStep([say('Reply to the second.')])),
        turn(/THIRD/, quickStep([say('Reply to the third.')])),
      ],
    });
    const { operator } = stage;
    await stage.runner();
    await operator.send('START');
    await endPolls(stage);
    await operator.until('the report to begin', (turns) => turns.some(({ kind }) => kind === 'between-run'));
    const second = await operator.send('SECOND');
    await operator.until('the second reply', (turns) =>
      assistantText(answering(turns, second)).includes('Reply to the second.'),
    );
    const third = await operator.send('THIRD');
    const turns = await operator.finished(4);
    expect(turnStates(turns)).toEqual(['user finished', 'between-run finished', 'user finished', 'user finished']);
    expect(assistantText(turns[1])).toBe('Poll exited with code 3, and here is what I make of it.');
    expectAnswered(turns, second, 'Reply to the second.');
    expectAnswered(turns, third, 'Reply to the third.');
    expect(stage.problems()).toEqual([]);
  });

  test('reports a task that ends during a turn in the following turn', async () => {
    const talk = 'Started the poll, and now I talk for a while without any tool call, slowly and at length.';
    const stage = await claudeStage(server, {
      turns: [
        turn(/START/, quickStep([background('sleep 1; exit 3', 'Poll')]), quickStep([say(talk)], { pace: 9 })),
        turn(/"Poll" failed/, reportExits),
      ],
    });
    const { operator } = stage;
    await stage.runner();
    const id = await operator.send('START');
    const turns = await operator.finished(2);
    expectAnswered(turns, id, talk);
    expect(assistantText(turns[1])).toBe('Poll exited with code 3');
    expect(turns[1]?.trigger?.kind).toBe('task');
  });

  test('asks for permission between turns and receives the answer or its expiry', async () => {
    const stage = await claudeStage(server, {
      turns: [
        startPoll(),
        turn(
          /"Poll" failed/,
          quickStep([say('Poll failed, I look at it.'), bash('touch marker', 'Look at it')]),
          quickStep([bash('touch other-marker', 'Look again')]),
          ({ results }) => quickStep([say(`I may not look again: ${results[0]?.text}`)]),
        ),
      ],
    });
    const { operator } = stage;
    await stage.runner('--permission-mode', 'default', '--answer-within', '6');
    await operator.send('START');
    const released = endPolls(stage);
    const asked = await operator.until('the first question', (turns) => {
      const open = requests(turns).find(
        (one) => one.outcome === null && JSON.stringify(one.input).includes('touch marker'),
      );
      // the poll itself needs permission too
      const first = requests(turns).find((one) => one.outcome === null);
      if (open === undefined && first !== undefined)
        void operator.answer(first.id, { behavior: 'allow' }).catch(() => {});
      return open;
    });
    await released;
    expect(asked.expiresAt).toBeGreaterThan(Date.now());
    expect(await operator.session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1 });
    await operator.answer(asked.id, { behavior: 'allow' });
    const turns = await operator.finished(2);
    expect(existsSync(join(stage.cwd, 'marker'))).toBe(true);
    expect(existsSync(join(stage.cwd, 'other-marker'))).toBe(false);
    const [first, second] = requests(turns.slice(1));
    expect(first?.outcome).toBe('allowed');
    expect(second).toMatchObject({ outcome: 'expired', message: 'Nobody answered in time.' });
    expect(assistantText(turns[1])).toContain('I may not look again: ');
    expect(assistantText(turns[1])).toContain('Nobody answered in time');
    await expect(operator.answer(second?.id ?? '', { behavior: 'allow' })).rejects.toThrow('409');
  });

  test('does not wake the agent when a task is stopped from the dashboard', async () => {
    const stage = await claudeStage(server, {
      turns: [
        turn(/START/, quickStep([background('sleep 600', 'Long poll')]), quickStep([say('Started a long poll.')])),
        turn(/NEXT/, quickStep([say('Reply to the next.')])),
      ],
    });
    const { operator } = stage;
    await stage.runner();
    await operator.send('START');
    await operator.finished(1);
    const [task] = await operator.tasks();
    expect(task).toMatchObject({ status: 'running' });
    await operator.stop(task?.id ?? '');
    await expect.poll(async () => (await operator.tasks())[0]?.status).toBe('stopped');
    const next = await operator.send('NEXT');
    const turns = await operator.finished(2);
    expectAnswered(turns, next, 'Reply to the next.');
    expect(turns).toHaveLength(2);
    await expect(operator.stop(task?.id ?? '')).rejects.toThrow('409');
  });

  test('shows background subagents under their cards and spares them on an interrupt', async () => {
    const subagents = ['A', 'B', 'C'].map((name, index) =>
      tool('Agent', {
        description: `Agent ${name}`,
        prompt: `AGENT-${name}`,
        subagent_type: 'general-purpose',
        run_in_background: true,
        at: index,
      }),
    );
    const stage = await claudeStage(server, {
      turns: [
        turn(
          /START/,
          quickStep([say('Starting.'), ...subagents.map(({ at: _, ...block }) => block)] as never),
          quickStep([say('Started three agents, and here is a long talk about them.')], { pace: 6 }),
        ),
        ...['A', 'B', 'C'].map(() =>
          turn(/"Agent \w" (?:completed|finished)|Agent "Agent/, ({ notices: told }) =>
            quickStep([say(told.map(({ result }) => `Heard: ${result}`).join(' | '))]),
          ),
        ),
      ],
      agents: ['A', 'B', 'C'].map((name, index) =>
        agent(
          new RegExp(`AGENT-${name}`),
          quickStep([say(`Agent ${name} starts.`), bash(`sleep ${index + 2}`, `Agent ${name} sleeps`)]),
          quickStep([say(`Agent ${name} is done.`)]),
        ),
      ),
    });
    const { operator } = stage;
    await stage.runner();
    await operator.send('START');
    await operator.until('the long talk', (turns) =>
      assistantText(turns.find(({ kind }) => kind === 'user')).includes('Started three'),
    );
    await operator.interrupt();
    await expect
      .poll(async () => (await operator.tasks()).map(({ status }) => status))
      .toEqual(['completed', 'completed', 'completed']);
    const turns = await operator.until('all reports', (all) => {
      const told = all.slice(1).map(assistantText).join('\n');
      return ['A', 'B', 'C'].every((name) => told.includes(`Agent ${name} is done.`)) && all;
    });
    expect(turns.find(({ kind }) => kind === 'user')?.state).toBe('interrupted');
    expect(notices(turns).some((text) => /interrupted.*continue: Agent A/.test(text))).toBe(true);
    // a subagent's text belongs under its task, not in a turn
    expect(messages(turns, 'assistant').some(({ text }) => text === 'Agent A starts.')).toBe(false);
  });
});
