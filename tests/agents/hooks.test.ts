import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Turn } from '@interlude/protocol/read-models';
import { agent, background, bash, say, tool, turn } from '@interlude/runner/cli/demo/scripted-model.mjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { quickStep, releaseTask, reportExits, startPoll, WAIT_FOR_RELEASE } from '../support/claude-stage';
import { type LiveServer, startLiveServer } from '../support/live-server';
import { assistantText, messages, requests, taskEnds, textsByTurn, turnStates } from '../support/operator';
import { terminalStage } from '../support/terminal-stage';
import { expectWithin } from '../support/timing';

/** The real Claude Code run by a user: the dashboard sees only what hooks and transcript report. */

let server: LiveServer;
beforeAll(async () => {
  server = await startLiveServer();
});
afterAll(() => server.stop());

const prompts = (turns: readonly Turn[]) => turns.map((one) => messages([one], 'user').map(({ text }) => text));

/** Ends the polls after their turn; a poll that ends earlier is reported in that turn. */
async function endPolls(stage: Awaited<ReturnType<typeof terminalStage>>): Promise<void> {
  await stage.turnsEnded(1);
  await releaseTask(stage.cwd);
}

describe('Claude Code with Interlude’s hooks', () => {
  test('shows a between-run turn when its background task ends', async () => {
    const stage = await terminalStage(server, {
      turns: [
        turn(
          /START/,
          quickStep([say('Starting.'), background(`${WAIT_FOR_RELEASE}exit 3`, 'Poll')]),
          quickStep([say('Started.')]),
        ),
        turn(/"Poll" failed/, reportExits),
      ],
    });
    const { operator } = stage;
    stage.type('START');
    await endPolls(stage);
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user finished', 'between-run finished']);
    expect(prompts(turns)).toEqual([['START'], []]);
    expect(textsByTurn(turns)).toEqual([['Starting.', 'Started.'], ['Poll exited with code 3']]);
    const [task, ...more] = await operator.tasks();
    expect(more).toEqual([]);
    expect(task).toMatchObject({ description: 'Poll', status: 'failed', exitCode: 3, answeredInTurnId: turns[1]?.id });
    expect(turns[1]?.trigger).toMatchObject({ kind: 'task', taskIds: [task?.id] });
    expect(taskEnds(turns).map(({ id }) => id)).toEqual([task?.id]);
    await stage.leave();
    await expect.poll(async () => (await operator.session())?.state).toBe('exited');
    expect(stage.problems()).toEqual([]);
  });

  test('reports each of three simultaneous task ends once, in the turn that mentions it', async () => {
    const polls = [1, 2, 3].map((at) => background(`echo from ${at}; ${WAIT_FOR_RELEASE}exit ${at}`, `Poll ${at}`));
    const stage = await terminalStage(server, {
      turns: [
        turn(/START/, quickStep([say('Starting.'), ...polls]), quickStep([say('Started three polls.')])),
        ...[1, 2, 3].map(() => turn(/"Poll \d" failed/, reportExits)),
      ],
    });
    const { operator } = stage;
    stage.type('START');
    await endPolls(stage);
    const exits = [1, 2, 3].map((at) => `Poll ${at} exited with code ${at}`);
    const told = (turns: readonly Turn[]) =>
      textsByTurn(turns)
        .flat()
        .flatMap((text) => text.split(' | '));
    await operator.until('three reports', (turns) => exits.every((text) => told(turns).includes(text)));
    const turns = await operator.finished(2);
    expect(told(turns).sort()).toEqual([...exits, 'Started three polls.', 'Starting.'].sort());
    const tasks = await operator.tasks();
    expect(tasks.map(({ status, exitCode }) => [status, exitCode])).toEqual([1, 2, 3].map((at) => ['failed', at]));
    for (const task of tasks) {
      const home = turns.find(({ id }) => id === task.answeredInTurnId);
      expect(assistantText(home)).toContain(`${task.description} exited`);
      expect(taskEnds(home ? [home] : []).map(({ id }) => id)).toContain(task.id);
      await expect.poll(() => operator.output(task.id)).toContain(`from ${task.exitCode}`);
    }
  });

  test('answers a message typed during a task report in the next turn', async () => {
    const long = 'Poll exited with code 3, and here is what I make of it.';
    const stage = await terminalStage(server, {
      turns: [
        startPoll(),
        turn(/"Poll" failed/, () => {
          stage.type('SECOND');
          return quickStep([say(long)], { wait: 300, pace: 12 });
        }),
        turn(/SECOND/, quickStep([say('Reply to the second.')])),
        turn(/THIRD/, quickStep([say('Reply to the third.')])),
      ],
    });
    const { operator } = stage;
    stage.type('START');
    await endPolls(stage);
    await operator.until('the second reply', (turns) => textsByTurn(turns).flat().includes('Reply to the second.'));
    stage.type('THIRD');
    await operator.until('the third reply', (turns) => textsByTurn(turns).flat().includes('Reply to the third.'));
    const turns = await operator.finished(4);
    expect(turnStates(turns)).toEqual(['user finished', 'between-run finished', 'user finished', 'user finished']);
    expect(prompts(turns)).toEqual([['START'], [], ['SECOND'], ['THIRD']]);
    expect(textsByTurn(turns)).toEqual([
      ['Started the poll.'],
      [long],
      ['Reply to the second.'],
      ['Reply to the third.'],
    ]);
    expect(stage.problems()).toEqual([]);
  });

  test('reports a task that ended during a turn in the following turn', async () => {
    const long = 'Started the poll, and now I talk for a while without any tool call, slowly and at length.';
    const stage = await terminalStage(server, {
      turns: [
        turn(/START/, quickStep([background('sleep 1; exit 3', 'Poll')]), quickStep([say(long)], { pace: 9 })),
        turn(/"Poll" failed/, reportExits),
      ],
    });
    const { operator } = stage;
    stage.type('START');
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user finished', 'between-run finished']);
    expect(prompts(turns)).toEqual([['START'], []]);
    expect(textsByTurn(turns)).toEqual([[long], ['Poll exited with code 3']]);
    const [task] = await operator.tasks();
    expect(task).toMatchObject({ status: 'failed', exitCode: 3, answeredInTurnId: turns[1]?.id });
    expect(turns[1]?.trigger).toMatchObject({ kind: 'task', taskIds: [task?.id] });
    // It ended during the turn.
    expect(task?.endedAt).toBeLessThanOrEqual(turns[0]?.endedAt ?? 0);
    expect(stage.problems()).toEqual([]);
  });

  test('shows an interrupt at the terminal, the running task and the next answer', async () => {
    let begun = () => {};
    const talking = new Promise<void>((resolve) => {
      begun = resolve;
    });
    const stage = await terminalStage(server, {
      turns: [
        turn(/START/, quickStep([say('Starting.'), background('sleep 600', 'Long poll')]), () => {
          begun();
          return quickStep([say('A long answer that never comes to its end')], { pace: 3 });
        }),
        turn(/NEXT/, quickStep([say('Reply to the next.')])),
      ],
    });
    const { operator } = stage;
    stage.type('START');
    await talking;
    await stage.interrupt();
    const [cut] = await operator.finished(1);
    expect(cut).toMatchObject({ kind: 'user', state: 'interrupted' });
    expect((await operator.tasks()).map(({ description, status }) => [description, status])).toEqual([
      ['Long poll', 'running'],
    ]);
    stage.type('NEXT');
    await operator.until('the next reply', (turns) => textsByTurn(turns).flat().includes('Reply to the next.'));
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user interrupted', 'user finished']);
    expect(prompts(turns)).toEqual([['START'], ['NEXT']]);
    expect(textsByTurn(turns)[1]).toEqual(['Reply to the next.']);
    expect(stage.problems()).toEqual([]);
  });

  test('shows a request between turns and its answer at the terminal', async () => {
    const stage = await terminalStage(
      server,
      {
        turns: [
          startPoll(),
          turn(
            /"Poll" failed/,
            quickStep([say('Poll failed, I look at it.'), bash('touch marker', 'Look at it')]),
            quickStep([bash('touch other-marker', 'Look again')]),
            quickStep([say('I may not look again.')]),
          ),
        ],
      },
      async (_, input) => {
        const { command } = input as { command: string };
        if (command === 'touch marker') await asked;
        if (command === 'touch other-marker') return { behavior: 'deny', message: 'Lieber nicht.' };
        return { behavior: 'allow', updatedInput: input };
      },
    );
    const { operator } = stage;
    let answer = () => {};
    const asked = new Promise<void>((resolve) => {
      answer = resolve;
    });
    stage.type('START');
    await endPolls(stage);
    const open = await operator.until('the question', (turns) =>
      requests(turns).find((one) => one.outcome === null && JSON.stringify(one.input).includes('touch marker')),
    );
    expect(await operator.session()).toMatchObject({ state: 'needs-input', pendingRequestCount: 1 });
    answer();
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user finished', 'between-run finished']);
    expect(textsByTurn(turns)).toEqual([
      ['Started the poll.'],
      ['Poll failed, I look at it.', 'I may not look again.'],
    ]);
    expect(existsSync(join(stage.cwd, 'marker'))).toBe(true);
    expect(existsSync(join(stage.cwd, 'other-marker'))).toBe(false);
    const [first, second, ...more] = requests(turns.slice(1));
    expect(more).toEqual([]);
    expect(first).toMatchObject({ id: open.id, outcome: 'allowed' });
    expect(second).toMatchObject({ outcome: 'denied', message: 'Lieber nicht.' });
    expect(await operator.session()).toMatchObject({ pendingRequestCount: 0 });
  });

  test('shows a task stopped at the terminal without a wake-up', async () => {
    const stage = await terminalStage(server, {
      turns: [
        turn(/START/, quickStep([background('sleep 600', 'Long poll')]), quickStep([say('Started a long poll.')])),
        turn(/NEXT/, quickStep([say('Reply to the next.')])),
      ],
    });
    const { operator } = stage;
    stage.type('START');
    await operator.finished(1);
    const [task] = await operator.tasks();
    expect(task).toMatchObject({ description: 'Long poll', status: 'running' });
    await stage.stopTask(task?.id ?? '');
    stage.type('NEXT');
    await operator.until('the next reply', (turns) => textsByTurn(turns).flat().includes('Reply to the next.'));
    const turns = await operator.finished(2);
    expect(turnStates(turns)).toEqual(['user finished', 'user finished']);
    expect(textsByTurn(turns)).toEqual([['Started a long poll.'], ['Reply to the next.']]);
    await expect.poll(async () => (await operator.tasks()).map(({ status }) => status)).toEqual(['stopped']);
  });

  test('shows each subagent’s report once under its card', async () => {
    const names = ['A', 'B', 'C'];
    const subagents = names.map((name) =>
      tool('Agent', {
        description: `Agent ${name}`,
        prompt: `AGENT-${name}`,
        subagent_type: 'general-purpose',
        run_in_background: true,
      }),
    );
    const stage = await terminalStage(server, {
      turns: [
        turn(/START/, quickStep([say('Starting.'), ...subagents]), quickStep([say('Started three agents.')])),
        ...names.map(() =>
          turn(/"Agent \w" (?:completed|finished)|Agent "Agent/, ({ notices: told }) =>
            quickStep([say(told.map(({ result }) => `Heard: ${result}`).join(' | '))]),
          ),
        ),
      ],
      agents: names.map((name, index) =>
        agent(
          new RegExp(`AGENT-${name}`),
          quickStep([say(`Agent ${name} starts.`), bash(`sleep ${index + 1}`, `Agent ${name} sleeps`)]),
          quickStep([say(`Agent ${name} is done.`)]),
        ),
      ),
    });
    const { operator } = stage;
    stage.type('START');
    const heard = names.map((name) => `Heard: Agent ${name} is done.`);
    const told = (turns: readonly Turn[]) =>
      textsByTurn(turns)
        .flat()
        .flatMap((text) => text.split(' | '));
    await operator.until('all reports', (turns) => heard.every((text) => told(turns).includes(text)));
    const turns = await operator.finished(2);
    expect(told(turns).sort()).toEqual([...heard, 'Started three agents.', 'Starting.'].sort());
    const [, ...woken] = turns.map(({ kind, trigger }) => `${kind} turn, by ${trigger?.kind}`);
    expect(woken).toEqual(woken.map(() => 'between-run turn, by task'));
    const tasks = await operator.tasks();
    expect(tasks.map(({ description, status }) => `${description} ${status}`).sort()).toEqual(
      names.map((name) => `Agent ${name} completed`),
    );
    for (const { id, answeredInTurnId } of tasks) {
      expect(taskEnds(turns.filter((one) => one.id === answeredInTurnId)).map((one) => one.id)).toContain(id);
    }
  });
});

test('a companion killed mid-run resumes without missing or duplicating events', async () => {
  const stage = await terminalStage(server, {
    turns: [
      turn(
        /START/,
        quickStep([say('Starting.'), background(`${WAIT_FOR_RELEASE}exit 3`, 'Poll')]),
        quickStep([say('Looking.'), bash('sleep 1', 'Look')]),
        quickStep([say('Started the poll.')]),
      ),
      turn(/"Poll" failed/, reportExits),
      turn(/NEXT/, quickStep([say('Reply to the next.')])),
    ],
  });
  const { operator } = stage;
  stage.type('START');
  await operator.until('the middle of the run', (turns) => textsByTurn(turns).flat().includes('Looking.'));
  await stage.killCompanion();
  await stage.companion();
  await endPolls(stage);
  await operator.until('the report', (turns) => textsByTurn(turns).flat().includes('Poll exited with code 3'));
  stage.type('NEXT');
  await operator.until('the next reply', (turns) => textsByTurn(turns).flat().includes('Reply to the next.'));
  const turns = await operator.finished(3);
  expect(turnStates(turns)).toEqual(['user finished', 'between-run finished', 'user finished']);
  expect(prompts(turns)).toEqual([['START'], [], ['NEXT']]);
  expect(textsByTurn(turns)).toEqual([
    ['Starting.', 'Looking.', 'Started the poll.'],
    ['Poll exited with code 3'],
    ['Reply to the next.'],
  ]);
  expect(taskEnds(turns)).toHaveLength(1);
  expect((await operator.tasks()).map(({ status, exitCode }) => [status, exitCode])).toEqual([['failed', 3]]);
  expect(await operator.session()).toMatchObject({ lostCount: 0, quarantinedCount: 0, runningTaskCount: 0 });
});

test('a companion marks its session idle on restart when the turn ended while it was dead', async () => {
  const stage = await terminalStage(server, {
    turns: [
      turn(/START/, quickStep([say('Looking.'), bash('sleep 1', 'Look')]), quickStep([say('All is well.')])),
      turn(/NEXT/, quickStep([say('Reply to the next.')])),
    ],
  });
  const { operator } = stage;
  stage.type('START');
  await operator.until('the middle of the run', (turns) => textsByTurn(turns).flat().includes('Looking.'));
  await stage.killCompanion();
  await stage.turnsEnded(1);
  await stage.companion();
  const [only] = await operator.finished(1);
  expect(only).toMatchObject({ kind: 'user', state: 'finished' });
  expect(await operator.session()).toMatchObject({ state: 'idle', away: null, lostCount: 0, owedCount: 0 });
  stage.type('NEXT');
  const turns = await operator.finished(2);
  expect(turnStates(turns)).toEqual(['user finished', 'user finished']);
  expect(textsByTurn(turns)).toEqual([['Looking.', 'All is well.'], ['Reply to the next.']]);
});

test.each([
  ['finished', 'exited', 'had ended its turn', [say('All is well.')]],
  ['failed', 'exited', 'was in the middle of it', [bash('tail -f /dev/null', 'Look on')]],
])(
  'a turn is %s and its session %s when the agent %s and was killed while its companion was dead',
  async (turnState, state, _, more) => {
    const stage = await terminalStage(server, {
      turns: [turn(/START/, quickStep([say('Looking.'), bash('sleep 1', 'Look')]), quickStep(more))],
    });
    const { operator } = stage;
    stage.type('START');
    await operator.until('the middle of the run', (turns) => textsByTurn(turns).flat().includes('Looking.'));
    await stage.killCompanion();
    if (turnState === 'finished') await stage.turnsEnded(1);
    await stage.killClaude();
    await stage.companion();
    const [only] = await operator.finished(1);
    expect(only).toMatchObject({ kind: 'user', state: turnState });
    await expect.poll(async () => (await operator.session())?.state).toBe(state);
  },
);

test('a killed companion leaves its session unwatched and not working, and catches up after a restart', async () => {
  const found =
    'What was found takes the agent longer to say than it takes us to miss its companion, so here it goes on.';
  const stage = await terminalStage(server, {
    turns: [turn(/START/, quickStep([say('Looking.'), bash('true', 'Look')]), quickStep([say(found)], { pace: 0.8 }))],
  });
  const { operator } = stage;
  stage.type('START');
  await operator.until('the middle of the run', (turns) => textsByTurn(turns).flat().includes('Looking.'));
  const killedAt = Date.now();
  await stage.killCompanion();
  await expect.poll(async () => (await operator.session())?.state).toBe('unknown');
  expectWithin(Date.now() - killedAt, 30_000);
  expect(await operator.session()).toMatchObject({ away: { agentGoesOn: true }, pendingRequestCount: 0 });
  await stage.companion();
  const turns = await operator.finished(1);
  expect(textsByTurn(turns)).toEqual([['Looking.', found]]);
  expect(await operator.session()).toMatchObject({ state: 'idle', away: null, lostCount: 0 });
});
