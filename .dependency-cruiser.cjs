/** The doors between rooms, as ARCHITECTURE.md names them: who may import whom, and where each npm package lives. */

/** Room → the rooms it may import besides itself. */
const DOORS = {
  'src/base': [],
  'src/protocol': ['src/base'],
  'src/stream': ['src/base'],
  'src/sync/core': ['src/base', 'src/protocol'],
  'src/sync/disk': ['src/base', 'src/protocol', 'src/sync/core'],
  'src/client': ['src/base', 'src/protocol', 'src/stream', 'src/sync'],
  'src/bridges': ['src/base', 'src/protocol', 'src/client'],
  'src/cli': ['src/base', 'src/protocol', 'src/client', 'src/bridges'],
  'src/server/http': ['src/base', 'src/protocol'],
  'src/server/tokens': ['src/base', 'src/protocol'],
  'src/server/store': ['src/base', 'src/protocol'],
  'src/server/providers': ['src/base', 'src/protocol'],
  'src/server/web': ['src/base', 'src/protocol', 'src/server/http'],
  'src/server/issuer': [
    'src/base',
    'src/protocol',
    'src/server/http',
    'src/server/tokens',
    'src/server/store',
    'src/server/web',
  ],
  'src/server/broker': [
    'src/base',
    'src/protocol',
    'src/stream',
    'src/server/http',
    'src/server/tokens',
    'src/server/store',
    'src/server/providers',
  ],
  'src/server/sandboxd': [
    'src/base',
    'src/protocol',
    'src/stream',
    'src/sync',
    'src/server/http',
    'src/server/tokens',
  ],
};

/** Package → the only places that may import it. */
const HOMES = {
  commander: ['src/cli'],
  chalk: ['src/cli'],
  ora: ['src/cli'],
  'openid-client': ['src/client'],
  '@napi-rs/keyring': ['src/client/credentials'],
  chokidar: ['src/sync/disk'],
  zod: ['src/protocol', 'src/[^/]+/config', 'src/server/.+/config'],
  'oidc-provider': ['src/server/issuer'],
  jose: ['src/server/tokens'],
  libsql: ['src/server/store'],
  pg: ['src/server/store'],
  '@lydell/node-pty': ['src/server/sandboxd'],
  '@xterm/headless': ['src/server/sandboxd'],
  '@xterm/addon-serialize': ['src/server/sandboxd'],
  'prom-client': ['src/server/http'],
  ws: ['src/client', 'src/server/http'],
};

const PURE = '^src/(base|protocol|stream|sync/core)/';

const doors = Object.entries(DOORS).map(([room, open]) => ({
  name: `door: ${room} → ${open.length === 0 ? 'nothing' : open.join(', ')}`,
  comment: `${room} may import only itself and what this door names.`,
  severity: 'error',
  from: { path: `^${room}/` },
  to: { path: '^src/', pathNot: [room, ...open].map((one) => `^${one}/`) },
}));

const homes = Object.entries(HOMES).map(([name, places]) => ({
  name: `home: ${name} lives in ${places.join(', ')}`,
  comment: `Only its home imports ${name}; ask there for what you need.`,
  severity: 'error',
  from: {
    path: '^src/',
    pathNot: ['tooling', ...places.map((place) => place.slice(4))].map(
      (one) => `^src/${one}(/|\\.ts$)`,
    ),
  },
  to: { path: `(^|/)node_modules/${name}/` },
}));

module.exports = {
  forbidden: [
    ...doors,
    ...homes,
    {
      name: 'door: pure rooms → no node modules',
      comment: 'base, protocol, stream and sync/core also run in a browser and in the sandbox.',
      severity: 'error',
      from: { path: PURE },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'door: nothing in src → test or tooling',
      comment: 'What is shipped does not know how it is built or tested.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/tooling/' },
      to: { path: '^(test|src/tooling)/' },
    },
    {
      name: 'no circles',
      comment: 'A circle has no top to read from.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only', 'dynamic-import'] } },
    },
    {
      name: 'every import is a dependency',
      comment: 'Shipped code imports only what package.json installs with it.',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/tooling/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown', 'unknown', 'undetermined'] },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', 'dist'] },
    exclude: { path: '^dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
