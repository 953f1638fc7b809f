/* Which processes can share memory (memory_domain.h). */
#include "planner/machine/memory_domain.h"

#include "planner/base/hash.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (const char *at = text; *at; at++)
        hash = cpl_hash_word(hash, (unsigned char)*at);
    return cpl_hash_word(hash, strlen(text));
}

int64_t cpl_memory_node(int64_t leader, bool is_grouped)
{
    char host[256] = "", boot[64] = "";
    struct stat memory;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (file && !fgets(boot, sizeof boot, file))
        boot[0] = '\0';
    if (file)
        fclose(file);
    gethostname(host, sizeof host - 1);
    uint64_t hash = hash_text(hash_text(CPL_HASH_START, host), boot);
    if (stat("/dev/shm", &memory) == 0)
        hash = cpl_hash_word(hash, (uint64_t)memory.st_dev);
    hash = cpl_hash_word(hash, is_grouped ? (uint64_t)leader : UINT64_MAX);
    return (int64_t)(cpl_hash_mix(hash) >> 1);
}
