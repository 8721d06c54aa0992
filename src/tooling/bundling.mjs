// What every bundle of this project shares: how names resolve, what stays outside, what the code is lowered to.

/** Node 20 has no `await using`; lowering it here keeps the source as it should read. */
export const shared = {
  platform: 'node',
  resolve: { extensionAlias: { '.js': ['.ts', '.js'] } },
  transform: { target: 'node20' },
  logLevel: 'warn',
};

export const external = {
  /** Packages with native parts: they find their own binaries and can't be bundled. */
  native: ['@lydell/node-pty', '@napi-rs/keyring', 'keytar'],
  /** Loaded only by the store or issuer that needs them: native parts again, or too large to be worth bundling. */
  server: ['libsql', 'pg', 'oidc-provider'],
  /** Any bare specifier, but for the helpers that lowering puts in: for code that runs where `node_modules` is. */
  packages: /^(?!\.|\/|\0|[A-Za-z]:|@oxc-project\/runtime)/,
};
