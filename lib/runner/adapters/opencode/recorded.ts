import { fieldsOf, isObject } from '@interlude/protocol/fields';
import { frameReader, type RecordedKind } from '../recorded-kind';
import { OpencodeAdapter } from './opencode-adapter';

/** Recordings of OpenCode: our requests, its answers and its events, a line each. */
export const recorded: RecordedKind = {
  recognises({ fields: { dir, msg } }) {
    if (dir === 'out') return /^\/(session|sync|permission|question|global)\b/.test(String(fieldsOf(msg).path));
    const { type, properties, payload } = fieldsOf(msg);
    return (isObject(properties) && typeof type === 'string' && type.includes('.')) || isObject(payload);
  },
  newReader: (options) => frameReader(new OpencodeAdapter({ ...options, isReplay: true })),
};
