import { EventSchemas } from '@ag-ui/core/schemas';
import { fieldsOf, listOf, textOf, textsOf } from '@interlude/protocol/fields';
import type { RecordingLine } from '@interlude/runner/adapters/recordings';
import { describe, expect, it } from 'vitest';
import { play, RECORDINGS, recordingLines } from './play';
import { type Story, tell } from './story';

const story = (name: string) => tell(play(recordingLines(name)));

/** A turn in one line: answered messages, folded tasks, texts and outcome. */
function summary({ turns, tasks, userMessages }: Story): string[] {
  const messageText = (id: string) => userMessages.find((message) => message.id === id)?.text ?? id;
  const taskName = (id: string) => tasks[id]?.description ?? id;
  return turns.map((turn) => {
    const whom =
      turn.kind === 'user' ? turn.userMessageIds.map(messageText) : (turn.trigger?.taskIds.map(taskName) ?? ['nobody']);
    const folded = turn.foldedTaskIds.length > 0 ? ` (and ${turn.foldedTaskIds.map(taskName).join(', ')})` : '';
    const end = turn.end === 'success' ? '' : ` [${typeof turn.end === 'string' ? turn.end : turn.end.code}]`;
    return `${turn.kind}: ${whom.join(' + ')}${folded} → ${turn.texts.join(' / ')}${end}`;
  });
}

function taskSummary({ tasks }: Story): string[] {
  return Object.values(tasks).map(
    (task) => `${task.description}: ${task.ends.join(', ')} ${task.exit_code ?? '-'} ${task.summary ?? '-'}`,
  );
}

const POLL_FAILED = 'Poll: failed 3 Background command "Poll" failed with exit code 3';
const POLL_STORY = ['user: START → Started the poll in the background.', 'between-run: Poll → Poll exited with code 3'];

const EXPECTED: Record<string, { turns: string[]; tasks: string[] }> = {
  'bash-bg': { turns: POLL_STORY, tasks: [POLL_FAILED] },
  'bash-bg-min': { turns: POLL_STORY, tasks: [POLL_FAILED] },
  'end-input': { turns: POLL_STORY, tasks: [POLL_FAILED] },
  'hooks-bash': { turns: POLL_STORY, tasks: [POLL_FAILED] },
  '3bg': {
    turns: [
      'user: START → Started three polls.',
      'between-run: Poll 1 → Poll 1 exited with code 1',
      'between-run: Poll 2 → Poll 2 exited with code 2',
      'between-run: Poll 3 → Poll 3 exited with code 3',
    ],
    tasks: [1, 2, 3].map((n) => `Poll ${n}: failed ${n} Background command "Poll ${n}" failed with exit code ${n}`),
  },
  agents: {
    turns: [
      'user: START → Started three agents.',
      'between-run: Agent A → Agent A: Agent A is done.',
      'between-run: Agent B → Agent B: Agent B is done.',
      'between-run: Agent C → Agent C: Agent C is done.',
    ],
    tasks: ['A', 'B', 'C'].map((name) => `Agent ${name}: completed - Agent ${name} is done.`),
  },
  'midturn-text': {
    turns: [
      'user: START → Started the poll and now I talk slowly for a while without any tool call.',
      'between-run: Poll → Poll exited with code 3',
    ],
    tasks: [POLL_FAILED],
  },
  perm: {
    turns: ['user: START → Started the poll.', 'between-run: Poll → Poll failed, I look at it. / Looked at it.'],
    tasks: [POLL_FAILED],
  },
  race: {
    turns: [...POLL_STORY, 'user: USERMSG-A → Reply to USERMSG-A.'],
    tasks: [POLL_FAILED],
  },
  stoptask: {
    turns: [
      'user: START → Started a long poll.',
      'user: USERMSG-A (and Long poll) → Long poll killed | Reply to USERMSG-A.',
    ],
    tasks: ['Long poll: stopped - Long poll'],
  },
};

describe('recordings of Claude Code', () => {
  it.each(Object.entries(EXPECTED))('%s: puts every reply into the turn that caused it', (name, expected) => {
    const told = story(name);
    expect(summary(told)).toEqual(expected.turns);
    expect(taskSummary(told)).toEqual(expected.tasks);
  });

  it.each(RECORDINGS)('%s: has the turns its results name, each text once', (name) => {
    const lines = recordingLines(name);
    const { turns } = tell(play(lines));
    const expected = turnsByResult(lines);
    expect(turns.map((turn) => turn.texts.join('\n'))).toEqual(expected.map((turn) => turn.texts.join('\n')));
    expect(turns.map((turn) => turn.userMessageIds)).toEqual(expected.map((turn) => turn.userMessageIds));
    const causes = turns.map((turn) => turn.trigger?.taskRunIds?.at(-1) ?? null);
    expect(causes).toEqual(expected.map((turn) => turn.taskRunId));
  });

  it.each(RECORDINGS)('%s: marks subagent texts with their tasks, each once', (name) => {
    const lines = recordingLines(name);
    const expected: Record<string, string[]> = {};
    for (const { agentId, text } of assistantTexts(lines))
      if (agentId !== null) expected[agentId] = [...(expected[agentId] ?? []), text];
    expect(tell(play(lines)).subagents).toEqual(expected);
  });

  it.each(RECORDINGS)('%s: ends background tasks as notified and hides foreground tasks', (name) => {
    const lines = recordingLines(name);
    const started = lines.map(({ msg }) => fieldsOf(msg)).filter((message) => message.subtype === 'task_started');
    const background = started.filter((message) => message.is_backgrounded !== false).map((message) => message.task_id);
    const { tasks } = tell(play(lines));
    expect(Object.keys(tasks)).toEqual(background);
    for (const { msg } of lines) {
      const { subtype, task_id, status, summary } = fieldsOf(msg);
      const task = subtype === 'task_notification' ? tasks[String(task_id)] : undefined;
      if (task !== undefined) expect(task).toMatchObject({ status, summary });
    }
    for (const task of Object.values(tasks)) expect(task.ends.at(-1)).toMatch(/completed|failed|stopped/);
  });

  it.each(RECORDINGS)('%s: leaves nothing unknown but the CLI’s own user messages', (name) => {
    const { raws } = story(name);
    expect(raws.map((raw) => fieldsOf(raw).type).filter((type) => type !== 'user')).toEqual([]);
  });

  it.each(RECORDINGS)('%s: writes only valid AG-UI events', (name) => {
    const wrong = play(recordingLines(name)).flatMap(({ event }) => {
      const { error } = EventSchemas.safeParse(event);
      return error === undefined ? [] : [{ event, issues: error.issues }];
    });
    expect(wrong).toEqual([]);
  });

  it.each(RECORDINGS)('%s: leaves nothing open when cut anywhere', (name) => {
    const lines = recordingLines(name);
    const step = Math.max(1, Math.floor(lines.length / 40));
    for (let length = 1; length < lines.length; length += step) {
      const cut = [...lines.slice(0, length), { t: 0, src: 'sdk.error', msg: 'killed' }];
      const { turns, tasks, requests } = tell(play(cut));
      expect(turns.map((turn) => turn.end)).not.toContain('open');
      expect(Object.values(tasks).filter((task) => task.ends.length === 0)).toEqual([]);
      expect(requests.filter((request) => request.outcomes.length === 0)).toEqual([]);
    }
  });

  it('triple: notifications answered together trigger one turn, in order', () => {
    const { turns, tasks } = story('demo/triple');
    const triggers = turns.map((turn) => turn.trigger?.taskIds.map((id) => tasks[id]?.description) ?? []);
    expect(triggers).toEqual([
      [],
      ['Lint'],
      ['Type check', 'Dependency audit'],
      ['Lint again', 'Type check again', 'Dependency audit again'],
    ]);
    expect(turns.map((turn) => turn.startTrigger)).toEqual(turns.map((turn) => turn.trigger));
    expect(turns.map((turn) => turn.parentRunId)).toEqual([null, 'r1', 'r1', 'r3']);
  });

  it('folded: a task reported between two tools of a user turn belongs to that turn', () => {
    const { turns, tasks } = story('demo/folded');
    expect(turns).toHaveLength(1);
    expect(turns[0]?.foldedTaskIds.map((id) => tasks[id]?.description)).toEqual(['Convert images']);
    expect(Object.values(tasks)[0]).toMatchObject({ status: 'completed', exit_code: 0 });
  });

  it('failure: the refused turn fails with a readable error, and the next one gets the task again', () => {
    const { turns } = story('demo/failure');
    expect(turns[1]?.end).toEqual({
      code: 'api_error',
      message: 'The model API refused the request (400 invalid_request_error): Credit balance is too low',
    });
    expect(turns[2]?.foldedTaskIds).toEqual(turns[1]?.trigger?.taskIds);
    expect(turns[2]?.end).toBe('success');
  });

  it('interrupted: the turn is cancelled, keeps its text, and the task continues', () => {
    const { turns } = story('demo/interrupted');
    expect(turns.map((turn) => turn.end)).toEqual(['success', 'cancelled', 'success', 'success']);
    expect(turns[1]?.texts[0]).toMatch(/^## How the planner works/);
    expect(turns[3]?.trigger?.kind).toBe('task');
  });

  it('permission: resolves requests once, as answered', () => {
    expect(story('demo/permission').requests.map((request) => request.outcomes)).toEqual([['allowed'], ['denied']]);
  });

  it('perm: infers an unrecorded answer from the agent’s action', () => {
    expect(story('perm').requests.map((request) => request.outcomes)).toEqual([
      ['unknown', 'allowed'],
      ['unknown', 'allowed'],
    ]);
  });

  it('resume: the killed process ends the session, and the next turn reports the stopped task', () => {
    const { turns, tasks, customs } = story('demo/resume');
    expect(turns.map((turn) => turn.kind)).toEqual(['user', 'user']);
    expect(Object.values(tasks)[0]?.ends).toEqual(['lost', 'stopped']);
    expect(turns[1]?.foldedTaskIds).toEqual(Object.keys(tasks));
    const ends = customs.filter((event) => event.name === 'session:ended').map((event) => event.value);
    expect(ends).toEqual([{ reason: 'terminated by signal SIGKILL' }, { reason: 'exited' }]);
  });

  it('user-twice: two messages merged into one turn are both answered by it', () => {
    const { turns, userMessages } = story('demo/user-twice');
    const ids = userMessages.map((message) => message.id);
    expect(turns.map((turn) => turn.userMessageIds)).toEqual([ids.slice(0, 1), ids.slice(1)]);
  });
});

describe('the output file of a background command', () => {
  it.each(RECORDINGS)('is reported as soon as known, for shells only: %s', (name) => {
    const events = play(recordingLines(name)).map(({ event }) => event);
    const customs = (of: string) => events.filter((event) => event.name === of).map(({ value }) => fieldsOf(value));
    const shells = new Set(
      customs('task:completed')
        .filter((value) => value.task_type === 'local_bash' && textOf(value.output_file) !== null)
        .map(({ task_id }) => task_id),
    );
    const named = customs('task:updated').filter(({ output_file }) => textOf(output_file) !== null);
    for (const { task_id, output_file } of named)
      expect(output_file).toMatch(new RegExp(`/tasks/${task_id}\\.output$`));
    for (const id of shells) expect(named.map(({ task_id }) => task_id)).toContain(id);
    const subagents = customs('task:started').filter(({ task_type }) => task_type === 'local_agent');
    for (const { task_id } of subagents) expect(named.map((value) => value.task_id)).not.toContain(task_id);
  });
});

/** Turns according to a recording's results, without the adapter. Skips empty results. */
function turnsByResult(lines: readonly RecordingLine[]) {
  const turns: { texts: string[]; userMessageIds: string[]; taskRunId: string | null }[] = [];
  let texts: string[] = [];
  for (const line of lines) {
    const message = fieldsOf(line.msg);
    texts.push(...assistantTexts([line]).flatMap(({ agentId, text }) => (agentId === null ? [text] : [])));
    if (message.type !== 'result' || message.num_turns === 0) continue;
    const taskRunId = textOf(fieldsOf(message.origin).runId);
    turns.push({ texts, userMessageIds: textsOf(message.user_message_uuids), taskRunId });
    texts = [];
  }
  return turns;
}

function assistantTexts(lines: readonly RecordingLine[]): { agentId: string | null; text: string }[] {
  return lines.flatMap(({ src, msg }) => {
    const message = fieldsOf(msg);
    if (src !== 'sdk' || message.type !== 'assistant') return [];
    return listOf(fieldsOf(message.message).content)
      .map((block) => textOf(fieldsOf(block).text))
      .filter((text) => text !== null)
      .map((text) => ({ agentId: textOf(message.agent_id), text }));
  });
}
