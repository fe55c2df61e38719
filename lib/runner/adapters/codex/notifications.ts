import { type Fields, fieldsOf, numberOf, textOf } from '@interlude/protocol/fields';
import type { CodexThread } from './thread';

/** What a notification of the app-server means to the thread that it is about, where it concerns nothing else. */
export function tellThread(thread: CodexThread, method: string, params: Fields, now: number): void {
  const { items, turns, writer } = thread;
  const turn = fieldsOf(params.turn);
  const turnId = textOf(turn.id) ?? textOf(params.turnId);
  const item = fieldsOf(params.item);
  const itemId = textOf(params.itemId) ?? '';
  const delta = textOf(params.delta) ?? '';
  switch (method) {
    case 'turn/started':
      if (turnId !== null) turns.started(turnId, now);
      break;
    case 'turn/completed':
      if (turnId !== null) turns.completed(turnId, turn);
      break;
    case 'item/started':
      items.started(turnId, item);
      break;
    case 'item/completed':
      items.completed(turnId, item);
      break;
    case 'item/agentMessage/delta':
    case 'item/plan/delta':
      items.delta(turnId, itemId, 'text', delta);
      break;
    case 'item/reasoning/summaryTextDelta':
    case 'item/reasoning/textDelta':
      items.delta(turnId, itemId, 'thought', delta);
      break;
    case 'item/reasoning/summaryPartAdded':
      if (numberOf(params.summaryIndex)) items.delta(turnId, itemId, 'thought', '\n\n');
      break;
    case 'item/commandExecution/outputDelta':
      items.wrote(itemId, delta);
      break;
    case 'thread/status/changed':
      turns.status(textOf(fieldsOf(params.status).type), now);
      break;
    case 'turn/plan/updated':
      thread.plan(turnId, params);
      break;
    case 'turn/diff/updated':
      thread.diff(params);
      break;
    case 'thread/goal/updated':
      thread.goal(fieldsOf(params.goal));
      break;
    case 'thread/goal/cleared':
      thread.goal(null);
      break;
    case 'error':
      thread.failed(params.error, params.willRetry === true);
      break;
    case 'model/rerouted':
      writer.notice(`Codex goes on with another model: ${textOf(params.toModel) ?? 'it does not say which'}.`);
      break;
    case 'guardianWarning':
      writer.notice(textOf(params.message) ?? 'Codex warns, and does not say of what.', 'warning');
      break;
    default:
      thread.keep(method, params);
  }
}
