'use client';

import { deleteJson } from '@/components/live/fetch-json';
import { PressTwice } from '@/components/ui/press-twice';
import { useAct } from './use-act';

/** Ends a credential on a second press: nothing brings it back. */
export function EndCredential(props: {
  id: string;
  name: string;
  word: 'Revoke' | 'End';
  onEnd: () => Promise<unknown>;
}) {
  const { id, name, word, onEnd } = props;
  const { isSending, failure, act } = useAct();
  const end = () =>
    act(async () => {
      await deleteJson(`/credentials/${encodeURIComponent(id)}`);
      await onEnd();
    });
  return (
    <>
      <PressTwice
        of={id}
        onPress={() => void end()}
        disabled={isSending}
        label={(isPressed) => (isPressed ? `${word} ${name}: sure?` : `${word} ${name}`)}
        className="min-h-6 whitespace-nowrap underline-offset-2"
        looks={['text-ink-2 decoration-line-strong hover:text-failed', 'font-medium text-failed']}
      >
        {(isPressed) => (isPressed ? `${word}, sure?` : word)}
      </PressTwice>
      <span role="alert" className="block text-2xs text-failed">
        {failure}
      </span>
    </>
  );
}
