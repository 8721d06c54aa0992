/** The same tests with every round of the long ones: `npm run test:soak`. */
import { mergeConfig } from 'vitest/config';
import config from './vitest.config.js';

export default mergeConfig(config, {
  test: { env: { AILSD_SOAK: '1' }, testTimeout: 600_000 },
});
