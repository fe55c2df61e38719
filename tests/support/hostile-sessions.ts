import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { type HostileText, hostileInputs, hostileTexts } from './hostile-texts';
import { message, taskStarted, toolCall, userTurn } from './turn-events';

/** A session whose page costs a naive server or browser far more than its size. */
interface HostileSession {
  id: string;
  events: AgUiEvent[];
}

/** Text length that fits into one record with JSON escapes. */
const RECORD = 100_000;
const MANY = 10_000;

/** Sessions with the corpus in every field that a page shows, and turns with thousands of items. */
export function* hostileSessions(): Generator<HostileSession> {
  for (const [index, texts] of inGroups(hostileTexts(RECORD), 6).entries()) {
    yield { id: `texts-${index}`, events: texts.flatMap(({ text }, turn) => inEveryField(`r${turn}`, text)) };
  }
  // One paragraph alone on the page, so each of its steps is a separate task.
  yield { id: 'one-paragraph', events: userTurn('r', 'Go', message('m', '*~`'.repeat(39_000))) };
  const many = Array.from({ length: MANY }, (_, index) => index);
  yield {
    id: 'tasks',
    events: userTurn(
      'r',
      'Go',
      many.map((at) => taskStarted(`t${at}`, `task ${at}`)),
    ),
  };
  yield {
    id: 'messages',
    events: userTurn(
      'r',
      'Go',
      many.flatMap((at) => message(`m${at}`, `*answer* ${at}`)),
    ),
  };
  yield {
    id: 'calls',
    events: userTurn(
      'r',
      'Go',
      many.flatMap((at) => toolCall(`c${at}`, 'Bash', { command: 'ls' }, 'a')),
    ),
  };
  const wide = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, index]));
  const calls = many.slice(0, 5).flatMap((at) => toolCall(`c${at}`, 'Bash', wide(19_000), 'a'));
  yield {
    id: 'wide-inputs',
    events: [
      ...atWork('wide-inputs'),
      ...calls,
      ...many.slice(0, 18).map((at) => requestOpened(`q${at}`, wide(19_000))),
    ],
  };
  yield { id: 'one-wide-input', events: [...atWork('one-wide-input'), requestOpened('q', wide(15_000))] };
  const questions = many.slice(0, 300).map((at) => ({ question: `Which ${at}?`, options: ['a', 'b', 'c'] }));
  yield { id: 'wide-question', events: [...atWork('wide-question'), requestOpened('q', { questions }, 'question')] };
  for (const { name, input, kind } of hostileInputs()) {
    const id = `input-${name.replaceAll(' ', '-')}`;
    yield { id, events: [...atWork(id), requestOpened('q', input, kind)] };
  }
  const signs = (length: number) => '\u200b\u200e'.repeat(length / 2);
  yield {
    id: 'names-of-signs',
    events: [
      ...atWork('names-of-signs'),
      ...many.slice(0, 150).map((at) => taskStarted(`${at}${signs(200)}`, `${at}${signs(2_000)}`)),
    ],
  };
  yield {
    id: 'titles-of-signs',
    events: [
      ...atWork('titles-of-signs'),
      ...many
        .slice(0, 200)
        .map((at) => requestOpened(`q${at}`, { command: 'ls' }, 'permission', `${at}${signs(3_000)}`)),
    ],
  };
  const fields = Object.fromEntries(many.slice(0, 28).map((at) => [`k${at}`, `v${at}`]));
  yield {
    id: 'many-fields',
    events: [...atWork('many-fields'), ...many.slice(0, 100).map((at) => requestOpened(`q${at}`, fields))],
  };
  yield {
    id: 'requests',
    events: [...atWork('requests'), ...many.map((at) => requestOpened(`q${at}`, { command: 'ls' }))],
  };
}

/** An open turn. */
function atWork(sessionId: string): AgUiEvent[] {
  return [...message('q', 'Go', 'user'), { type: 'RUN_STARTED', threadId: sessionId, runId: 'r' }];
}

function requestOpened(requestId: string, input: unknown, kind = 'permission', title = `Ask ${requestId}`): AgUiEvent {
  return {
    type: 'CUSTOM',
    name: 'request:opened',
    value: { requestId, kind, title, tool: 'Bash', input },
  };
}

function inEveryField(id: string, text: string): AgUiEvent[] {
  return userTurn(id, text.slice(0, 20_000), [
    ...message(`${id}/answer`, text),
    ...toolCall(`${id}/call`, 'Bash', { command: text.slice(0, 20_000) }, text),
    taskStarted(`${id}/task`, text.slice(0, 20_000)),
  ]);
}

function inGroups(texts: readonly HostileText[], size: number): HostileText[][] {
  const groups: HostileText[][] = [];
  for (let index = 0; index < texts.length; index += size) groups.push(texts.slice(index, index + size));
  return groups;
}
