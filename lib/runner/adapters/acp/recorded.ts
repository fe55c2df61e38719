import { fieldsOf } from '@interlude/protocol/fields';
import { frameReader, type RecordedKind } from '../recorded-kind';
import { AcpAdapter } from './acp-adapter';

/** Recordings of ACP agents: `{"dir","at","msg"}` a line, JSON-RPC frames. */
export const recorded: RecordedKind = {
  recognises({ fields: { dir, msg } }) {
    const { jsonrpc, method, params } = fieldsOf(msg);
    if ((dir !== 'in' && dir !== 'out') || jsonrpc !== '2.0') return false;
    return (method === 'initialize' && typeof fieldsOf(params).protocolVersion === 'number') || OWN.has(String(method));
  },
  newReader: (options) => frameReader(new AcpAdapter({ ...options, isReplay: true })),
};

const OWN = new Set(['session/new', 'session/load', 'session/prompt', 'session/update']);
