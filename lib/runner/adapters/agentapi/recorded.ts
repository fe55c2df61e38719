import { fieldsOf } from '@interlude/protocol/fields';
import { frameReader, type RecordedKind } from '../recorded-kind';
import { AgentApiAdapter } from './agentapi-adapter';

const EVENTS: ReadonlySet<unknown> = new Set(['message_update', 'status_change', 'agent_error', 'screen']);

/** Recordings of what passed between a runner and an AgentAPI server: one session each. */
export const recorded: RecordedKind = {
  recognises({ fields: { msg } }) {
    const { event, path, body } = fieldsOf(msg);
    return EVENTS.has(event) || (path === '/message' && typeof fieldsOf(body).content === 'string');
  },
  newReader: (options) => frameReader(new AgentApiAdapter({ ...options, isReplay: true })),
};
