import { fieldsOf } from '@interlude/protocol/fields';
import { frameReader, type RecordedKind } from '../recorded-kind';
import { AgUiAdapter } from './agui-adapter';
import { runInputOf } from './agui-frames';

/** Recordings of what passed between a runner and an AG-UI server, of one thread each. */
export const recorded: RecordedKind = {
  recognises({ fields: { msg } }) {
    const { stream, body } = fieldsOf(msg);
    return stream === 'run' || stream === 'events' || runInputOf(body) !== null;
  },
  newReader: (options) => frameReader(new AgUiAdapter({ ...options, isReplay: true })),
};
