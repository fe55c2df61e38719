import { deleteJson } from '@/components/live/fetch-json';
import { SureButton } from './sure-button';

/** Ends a credential on a second press: nothing brings it back. */
export function EndCredential(props: {
  id: string;
  name: string;
  word: 'Revoke' | 'End';
  onEnd: () => Promise<unknown>;
}) {
  const { id, name, word, onEnd } = props;
  const end = async () => {
    await deleteJson(`/credentials/${encodeURIComponent(id)}`);
    await onEnd();
  };
  return <SureButton of={id} word={word} name={name} onSure={end} />;
}
