'use client';

import { ConfirmButton } from '@/components/ui/confirm-button';
import { useAct } from './use-act';

/**
 * Does at a second press what can't be taken back so easily, and says so where it fails.
 *
 * @param of what it is about: another one begins at the first press
 */
export function SureButton(props: { of: string; word: string; name: string; onSure: () => Promise<unknown> }) {
  const { of, word, name, onSure } = props;
  const { isSending, failure, act } = useAct();
  return (
    <>
      <ConfirmButton
        of={of}
        onPress={() => void act(onSure)}
        disabled={isSending}
        label={(isPressed) => (isPressed ? `${word} ${name}: sure?` : `${word} ${name}`)}
        className="min-h-6 whitespace-nowrap underline-offset-2"
        looks={['text-ink-2 decoration-line-strong hover:text-failed', 'font-medium text-failed']}
      >
        {(isPressed) => (isPressed ? `${word}, sure?` : word)}
      </ConfirmButton>
      <span role="alert" className="block text-2xs text-failed">
        {failure}
      </span>
    </>
  );
}
