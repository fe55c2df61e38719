// biome-ignore-all lint/suspicious/noTemplateCurlyInString: source text

/**
 * Rules of the page: misclick guard, follow-tail, hostile text.
 *
 * @type {readonly import('./mutant.mjs').Mutant[]}
 */
export const PAGE = [
  {
    name: 'takes a press on a control that has just appeared',
    file: 'components/ui/stillness.ts',
    find: 'return this.#place !== null && now - this.#since >= SETTLE_MS;',
    replace: 'return this.#place !== null && now >= this.#since;',
    test: 'tests/unit/ui/stillness.test.ts',
  },
  {
    name: 'takes a press on a control that has just moved',
    file: 'components/ui/stillness.ts',
    find: 'if (isNear(place, this.#place)) return;',
    replace: 'return;',
    test: 'tests/unit/ui/stillness.test.ts',
  },
  {
    name: 'presses a control that is not settled',
    file: 'components/ui/settled-button.tsx',
    find: 'onClick={() => isMeant() && onPress()}',
    replace: 'onClick={() => onPress()}',
    test: 'tests/ui/settled-button.test.tsx',
  },
  {
    name: 'answers a request by a press that was not meant for it',
    file: 'components/requests/request-card.tsx',
    find: 'const answer = (body: object) => isMeant() && give(body);',
    replace: 'const answer = (body: object) => give(body);',
    test: 'tests/ui/meant-press.test.tsx',
  },
  {
    name: 'allows an input that nobody has seen whole',
    file: 'components/requests/request-card.tsx',
    find: "if (option === null || (option.kind === 'allow' && unseen !== null)) return;",
    replace: 'if (option === null) return;',
    test: 'tests/ui/meant-press.test.tsx',
  },
  {
    name: 'sends an answer without the digest of what was shown',
    file: 'components/requests/request-card.tsx',
    find: 'const digest = item.digest === null ? {} : { digest: item.digest };',
    replace: 'const digest = {};',
    test: 'tests/ui/meant-press.test.tsx',
  },
  {
    name: 'takes a request that asks anew for the one that was read',
    file: 'components/requests/request-key.ts',
    find: "`request:${item.id}:${item.position}:${item.digest ?? ''}`",
    replace: '`request:${item.id}:${item.position}`',
    test: 'tests/ui/request-swap.test.ts',
  },
  {
    name: 'counts an input as seen whose middle was never in sight',
    file: 'components/requests/seen-stretches.ts',
    find: 'return this.#stretches.some(([from, to]) => from <= ROUNDED_PX && to >= height - ROUNDED_PX);',
    replace: 'return this.#stretches.some(([, to]) => to >= height - ROUNDED_PX);',
    test: 'tests/ui/seen-stretches.test.ts',
  },
  {
    name: 'does at the first press what takes two',
    file: 'components/ui/press-twice.tsx',
    find: 'if (isPressed) onPress();',
    replace: 'onPress();',
    test: 'tests/ui/settled-button.test.tsx',
  },
  {
    name: 'follows the end of a log that the reader has left',
    file: 'components/ui/use-follow.ts',
    find: 'if (isUp && canLeave()) tell(false);',
    replace: '',
    test: 'tests/ui/follow.test.tsx',
  },
  {
    name: 'leaves the end of a log because lines push it away',
    file: 'components/ui/use-follow.ts',
    find: 'if (!isHeld && performance.now() - actedAt > OWN_SCROLL_MS) {',
    replace: 'if (isHeld) {',
    test: 'tests/ui/follow.test.tsx',
  },
  {
    name: 'follows the end of a transcript that the reader has left',
    file: 'components/transcript/use-tail.ts',
    find: 'if (leftAt === null && !held) box.scrollTop = box.scrollHeight;',
    replace: 'box.scrollTop = box.scrollHeight;',
    test: 'tests/ui/follow.test.tsx',
  },
  {
    name: 'shows a character that can not be seen as nothing',
    file: 'components/ui/verbatim.ts',
    find: "else pieces.push({ kind: 'sign', text: match[0], label: labelOf(match[0]) });",
    replace: "else pieces.push({ kind: 'text', text: match[0] });",
    test: 'tests/ui/verbatim.test.tsx',
  },
  {
    name: 'sends a message before it is stored',
    file: 'components/composer/outgoing-queue.ts',
    find: 'storeOutgoing(this.#options.storage, this.#options.sessionId, message);\n    this.#put([...this.#messages, message]);',
    replace: 'this.#put([...this.#messages, message]);',
    test: 'tests/ui/outgoing-queue.test.ts',
  },
  {
    name: 'forgets a message whose answer did not come',
    file: 'components/composer/outgoing-queue.ts',
    find: "if (next.state === 'sent') forgetOutgoing(storage, sessionId, next.clientId);",
    replace: "if (next.state !== 'refused') forgetOutgoing(storage, sessionId, next.clientId);",
    test: 'tests/ui/outgoing-queue.test.ts',
  },
  {
    name: 'sends a message ahead of one that waits',
    file: 'components/composer/outgoing-queue.ts',
    find: "const head = this.#messages.find(({ state }) => state !== 'sent' && state !== 'refused');",
    replace: "const head = this.#messages.findLast(({ state }) => state !== 'sent' && state !== 'refused');",
    test: 'tests/ui/outgoing-queue.test.ts',
  },
  {
    name: 'takes the keys of a person who is typing',
    file: 'components/ui/is-typing.ts',
    find: 'return isChosen || target.isContentEditable || target.matches(FIELD);',
    replace: 'return isChosen;',
    test: 'tests/ui/is-typing.test.tsx',
  },
];
