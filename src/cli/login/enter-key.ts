/** Calls when somebody types Enter. The terminal stays in its ordinary mode, so there is nothing to undo. */
export function onEnter(typed: () => void): Disposable {
  const { stdin } = process;
  const onData = (chunk: Buffer | string): void => {
    if (/[\r\n]/.test(chunk.toString())) typed();
  };
  // A terminal that hangs up is a signal too; the stream's own error says nothing more.
  const onError = (): void => undefined;
  stdin.on('data', onData);
  stdin.on('error', onError);
  return {
    [Symbol.dispose]: () => {
      stdin.off('data', onData);
      stdin.pause();
    },
  };
}
